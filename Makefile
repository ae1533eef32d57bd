# make run [NODES=3] [HTTP_PORT=9090] [HTTPS_PORT=9443] [AGGREGATED_PORT=10250], make cluster-up [NODES=3]; make alone
# lists the targets. With CLUSTER=current the cluster is the one that kubectl is set to.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# The Node that package.json pins, whatever the machine has.
node := node_modules/.bin/node
installed := node_modules/.package-lock.json

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# npm writes this file last.
$(installed): package-lock.json
	npm ci --loglevel=error --no-audit --no-fund
	@touch $@

.PHONY: run
run: $(installed) ## start a control plane and the server behind it, here
	@$(node) hack/run/main.ts

.PHONY: kubeconfig
kubeconfig: $(installed) ## write a kubeconfig for kubectl through the server that make run has started
	@$(node) hack/kubeconfig/main.ts

.PHONY: cluster-up
cluster-up: $(installed) ## start the control plane, or change its number of nodes
	@$(node) hack/cluster/main.ts up

.PHONY: cluster-down
cluster-down: $(installed) ## end the control plane and throw its state away
	@$(node) hack/cluster/main.ts down

.PHONY: cluster-status
cluster-status: $(installed) ## show what runs
	@$(node) hack/cluster/main.ts status

.PHONY: build
build: $(installed) ## compile src to dist
	@$(node) node_modules/.bin/tsc -p tsconfig.build.json

.PHONY: test
test: $(installed) ## run the unit, conformance and integration tests
	@$(node) test/suites.ts

.PHONY: test-clients
test-clients: $(installed) ## try kubectl of more minor versions, which are built first
	@$(node) test/clients/kubectl/main.ts

.PHONY: test-loki
test-loki: $(installed) ## try the log store loki with a real Loki, which is built first
	@$(node) --experimental-vm-modules --disable-warning=ExperimentalWarning \
	  node_modules/jest/bin/jest.js --testTimeout=300000 test/loki/

.PHONY: chaos
chaos: $(installed) ## kill replicas while people log in, refresh and revoke (CHAOS=600 seconds)
	@CHAOS=$${CHAOS:-600} $(node) --experimental-vm-modules --disable-warning=ExperimentalWarning \
	  node_modules/jest/bin/jest.js test/integration/session-faults.test.ts

.PHONY: fuzz
fuzz: $(installed) ## send random requests, rights and strings to this server, random responses to its parser; read lists of 100,000 (FUZZ=1000, CASES=20000)
	@FUZZ=$${FUZZ:-1000} CASES=$${CASES:-20000} $(node) --experimental-vm-modules --disable-warning=ExperimentalWarning \
	  node_modules/jest/bin/jest.js --runInBand test/integration/fuzz.test.ts test/integration/authorization.test.ts \
	  test/conformance/hostile-strings.test.ts test/unit/cluster/wire/response-parser-oracle.test.ts
	@FRAMING_SIZES=100000 $(node) --experimental-vm-modules --disable-warning=ExperimentalWarning \
	  --max-old-space-size=8192 node_modules/jest/bin/jest.js --testTimeout=3600000 test/conformance/framing.test.ts

.PHONY: e2e
e2e: $(installed) ## install the chart into a one-node cluster (Linux, root)
	@$(node) test/e2e/main.ts

.PHONY: bench
bench: $(installed) ## compare speed with kube-apiserver and nginx
	@$(node) test/bench/main.ts

.PHONY: verify
verify: $(installed) ## check types, style, layers, dead code, generated files, chart and manifests
	@$(node) hack/verify/main.ts

.PHONY: update
update: $(installed) ## bring up to date what is generated, and format
	@$(node) hack/update-crds.ts
	@$(node) hack/update-examples.ts
	@$(node) hack/update-api.ts
	@$(node) hack/update-configuration.ts
	@$(node) hack/update-manifests.ts
	@$(node) node_modules/.bin/prettier --write --log-level=warn .
	@gofmt -w $$(git ls-files '*.go')

.PHONY: mutants
mutants: $(installed) ## change the code, one thing at a time, and list the changes that no test notices (FILES="src/auth src/gateway" TESTS=test/unit)
	@$(node) hack/mutants/main.ts

.PHONY: screenshot
screenshot: $(installed) ## take the picture of /docs that README.md shows
	@$(node) hack/screenshot/main.ts

.PHONY: package
package: $(installed) ## put the chart and the descriptions of a release into dist/package
	@$(node) hack/package/main.ts

.PHONY: clean
clean: cluster-down ## also remove what was built
	rm -rf dist coverage .cluster
