# The image contains the Node.js binary and the bundled server, but no shell and no package manager. Both base images can be
# replaced: the first needs Node.js 24, npm and glibc, the second only glibc and libstdc++.
ARG NODE_IMAGE=docker.io/library/node:24-bookworm-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/cc-debian12:nonroot

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
# No package needs its install script: native packages ship binaries.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY hack/build.ts hack/build.ts
COPY src src
RUN node hack/build.ts

FROM ${RUNTIME_IMAGE}
COPY --from=build /usr/local/bin/node /usr/local/bin/node
WORKDIR /app
COPY LICENSE package.json ./
COPY api/examples api/examples
COPY --from=build /build/dist dist
ENV NODE_ENV=production
USER 65532:65532
EXPOSE 9090 9443 10250
# --max-semi-space-size=16: short-lived objects die before 16 MB are full. The default is no faster, and the heap grows by
# 100 MB under load.
# --no-allocation-site-pretenuring: all objects survive while the first list is stored. V8 would conclude that the same code
# must allocate in old space from then on, where each dead request keeps later ones alive until the next full marking. Without
# pretenuring, a get takes a fifth less time, and the heap is 100 MB smaller.
ENTRYPOINT ["node", "--max-semi-space-size=16", "--no-allocation-site-pretenuring", "/app/dist/main.js"]
