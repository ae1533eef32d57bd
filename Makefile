# `make` lists the targets. Options: make run [NODES=3] [HTTP_PORT=9090] [HTTPS_PORT=9443] [AGGREGATED_PORT=10250],
# make cluster-up [NODES=3]. CLUSTER=current uses the cluster of the current kubectl context. KUBERNETES=1.31 selects a
# version of hack/cluster/kubernetes.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# The Node.js version that package.json pins, whatever version the machine has.
node := node_modules/.bin/node
installed := node_modules/.package-lock.json

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# npm writes this file when the installation is complete.
$(installed): package-lock.json
	npm ci --loglevel=error --no-audit --no-fund
	@touch $@

.PHONY: run
run: $(installed) ## start a local control plane and the server
	@$(node) hack/run/main.ts

.PHONY: kubeconfig
kubeconfig: $(installed) ## write a kubeconfig that accesses the cluster through the server of make run
	@$(node) hack/kubeconfig/main.ts

.PHONY: cluster-up
cluster-up: $(installed) ## start the control plane, or change the number of nodes
	@$(node) hack/cluster/main.ts up

.PHONY: cluster-down
cluster-down: $(installed) ## stop the control plane and delete its state
	@$(node) hack/cluster/main.ts down

.PHONY: cluster-status
cluster-status: $(installed) ## show the state of the control plane
	@$(node) hack/cluster/main.ts status

.PHONY: build
build: $(installed) ## bundle src to dist
	@$(node) hack/build.ts

.PHONY: test
test: $(installed) ## run the unit, conformance and integration tests (FILES="test/unit/http" selects files)
	@$(if $(FILES),$(node) --experimental-vm-modules --disable-warning=ExperimentalWarning \
	  node_modules/jest/bin/jest.js --testTimeout=120000 --runInBand $(FILES),$(node) test/suites.ts)

.PHONY: test-clients
test-clients: $(installed) ## test with clients of other projects (TOOLS="fabric8 k9s" selects some)
	@$(node) test/clients/main.ts $(TOOLS)

.PHONY: test-loki
test-loki: $(installed) ## build Loki, and test log queries with it
	@$(node) --experimental-vm-modules --disable-warning=ExperimentalWarning \
	  node_modules/jest/bin/jest.js --testTimeout=300000 test/loki/

.PHONY: test-monitoring
test-monitoring: $(installed) ## build Prometheus, and test the alerts and dashboards with it
	@$(node) --experimental-vm-modules --disable-warning=ExperimentalWarning \
	  node_modules/jest/bin/jest.js --runInBand test/monitoring/

.PHONY: test-ingress
test-ingress: $(installed) ## build Traefik, and test the chart's routes to the server with it
	@$(node) --experimental-vm-modules --disable-warning=ExperimentalWarning \
	  node_modules/jest/bin/jest.js --runInBand test/ingress/

.PHONY: conformance
conformance: $(installed) ## run the Kubernetes end-to-end tests directly at kube-apiserver and through the gateway
	@$(node) test/upstream/main.ts

.PHONY: chaos
chaos: $(installed) ## kill replicas while users log in, refresh tokens and revoke sessions (CHAOS=600 seconds)
	@CHAOS=$${CHAOS:-600} $(node) --experimental-vm-modules --disable-warning=ExperimentalWarning \
	  node_modules/jest/bin/jest.js test/integration/session-faults.test.ts

.PHONY: fuzz
fuzz: $(installed) ## test with random requests, permissions, strings and upstream responses, and lists of 100,000 objects (FUZZ=1000, CASES=20000)
	@FUZZ=$${FUZZ:-1000} CASES=$${CASES:-20000} $(node) --experimental-vm-modules --disable-warning=ExperimentalWarning \
	  node_modules/jest/bin/jest.js --runInBand test/integration/fuzz.test.ts test/integration/authorization.test.ts \
	  test/integration/impersonation.test.ts \
	  test/conformance/hostile-strings.test.ts test/unit/cluster/wire/response-parser-oracle.test.ts
	@FRAMING_SIZES=100000 $(node) --experimental-vm-modules --disable-warning=ExperimentalWarning \
	  --max-old-space-size=8192 node_modules/jest/bin/jest.js --testTimeout=3600000 test/conformance/framing.test.ts

.PHONY: e2e
e2e: $(installed) ## install the chart into a one-node cluster (Linux, root)
	@$(node) test/e2e/main.ts

.PHONY: test-kubernetes
test-kubernetes: $(installed) ## run make e2e with other versions of Kubernetes
	@set -e; for version in $(notdir $(wildcard hack/cluster/kubernetes/*)); do \
	  KUBERNETES=$$version $(node) test/e2e/main.ts; done

.PHONY: bench
bench: $(installed) ## compare performance with kube-apiserver and nginx
	@$(node) test/bench/main.ts

.PHONY: verify
verify: $(installed) ## check types, style, layers, dead code, generated files, chart and manifests
	@$(node) hack/verify/main.ts

.PHONY: update
update: $(installed) ## update generated files, and format
	@$(node) hack/update-crds.ts
	@$(node) hack/update-examples.ts
	@$(node) hack/update-api.ts
	@$(node) hack/update-configuration.ts
	@$(node) hack/update-metrics.ts
	@$(node) hack/update-monitoring.ts
	@$(node) hack/update-chart.ts
	@$(node) hack/update-manifests.ts
	@$(node) node_modules/.bin/prettier --write --log-level=warn .
	@gofmt -w $$(git ls-files '*.go')

.PHONY: mutants
mutants: $(installed) ## mutate the code and list the mutants that no test detects (FILES="src/auth src/gateway" TESTS=test/unit)
	@$(node) hack/mutants/main.ts

.PHONY: screenshot
screenshot: $(installed) ## take the screenshot of /docs for docs/reference/api.md
	@$(node) hack/screenshot/main.ts

.PHONY: draw-dashboards
draw-dashboards: $(installed) ## draw the pictures of the dashboards for docs/guides/monitoring.md, with a real Prometheus
	@$(node) hack/screenshot/dashboards.ts

# Requires an npm registry that supports audit requests.
.PHONY: audit
audit: ## list known vulnerabilities of the packages in the image
	@npm audit --omit=dev

# hack/release/main.ts describes the variables.
.PHONY: release
release: $(installed) ## write the files of a release to dist/release (VERSION=1.2.3 IMAGE=registry.example.com/name)
	@$(node) hack/release/main.ts

.PHONY: release-check
release-check: ## build the release again in a clone of the commit, and compare the checksums
	@set -e; clone=$$(mktemp -d); trap 'rm -rf "$$clone"' EXIT; git clone --quiet . "$$clone"; \
	  $(MAKE) -C "$$clone" release; diff dist/release/SHA256SUMS "$$clone/dist/release/SHA256SUMS"; \
	  echo 'both builds are identical'

# `cosign verify-blob` accepts the signature. Signing is separate from the build, because the build runs code of npm
# packages, which must not have access to the key.
.PHONY: sign
sign: ## sign the checksums of a release (KEY=FILE, a private key in PEM)
	@cd dist/release && sha256sum --check --strict --quiet SHA256SUMS
	@openssl dgst -sha256 -sign $(KEY) -out dist/SHA256SUMS.der dist/release/SHA256SUMS
	@openssl base64 -A -in dist/SHA256SUMS.der -out dist/release/SHA256SUMS.sig

# Requires skopeo and helm with access to the registry, and gh with access to GitHub.
.PHONY: publish
publish: CHARTS ?= $(dir $(IMAGE))charts
publish: ## push the image and the chart of a release, and create the release on GitHub (VERSION IMAGE)
	skopeo copy --all --preserve-digests oci-archive:dist/release/platform-apiserver-image-$(VERSION).tar docker://$(IMAGE):$(VERSION)
	helm push dist/release/platform-apiserver-$(VERSION).tgz oci://$(CHARTS)
	gh release create v$(VERSION) --verify-tag $(if $(findstring -,$(VERSION)),--prerelease) \
	  --notes-file dist/release/release-notes.md dist/release/*

.PHONY: update-base
update-base: $(installed) ## pin the current versions of the Debian packages in the image
	@$(node) hack/update-base.ts

.PHONY: clean
clean: cluster-down ## delete build output and the control plane
	rm -rf dist coverage .cluster
