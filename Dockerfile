# syntax=docker/dockerfile:1

# The compiler runs on the machine that builds and makes code for the platform
# that is asked for, so no emulation is needed:
#   docker buildx build --platform linux/amd64,linux/arm64 -t IMAGE .
FROM --platform=$BUILDPLATFORM golang:1.27 AS build
WORKDIR /src

# What changes rarely first.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod \
    go mod download

# Only what the binary is built from.
COPY main.go ./
COPY cli/ cli/
COPY config/ config/
COPY scoring/ scoring/
COPY webhook/ webhook/

ARG TARGETOS TARGETARCH
ARG VERSION=""
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath \
      -ldflags "-s -w -X github.com/gpu-binpacker/gpu-binpacker/cli.version=$VERSION" \
      -o /gpu-binpacker .

# No shell, no package manager; CA certificates, time zones and a nonroot user.
FROM gcr.io/distroless/static:nonroot
LABEL org.opencontainers.image.title="gpu-binpacker" \
      org.opencontainers.image.description="Makes the default Kubernetes scheduler pack GPU pods" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /gpu-binpacker /gpu-binpacker
USER 65532:65532
ENTRYPOINT ["/gpu-binpacker"]
CMD ["serve"]
