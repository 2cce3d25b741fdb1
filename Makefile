# Needs Go, make and git; everything else comes as pinned Go modules.
# `make` alone lists what there is.

# What `make push` pushes and `make manifests` writes into bin/install.yaml.
IMAGE ?= gpu-binpacker:latest
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
# What the image runs on, and what else kubectl runs on.
IMAGE_PLATFORMS ?= linux/amd64 linux/arm64
PLUGIN_PLATFORMS ?= darwin/amd64 darwin/arm64 $(IMAGE_PLATFORMS) windows/amd64 windows/arm64
# Where image and release files go.
OUTPUT ?= bin
# The time of everything in the image and in archives, so that they can be made
# again byte by byte: that of the commit.
SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),0)
# How long each fuzz target runs.
FUZZTIME ?= 30s
# Flags for go test, for example TESTFLAGS='-run FourPods -v'.
TESTFLAGS ?=

GO ?= go
CONTAINER_TOOL ?= docker
# The browser of make test-browser.
CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
# The race detector needs a C compiler; without one the tests run without it.
RACE ?= $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)
MODULE := github.com/gpu-binpacker/gpu-binpacker
LDFLAGS := -s -w -X $(MODULE)/cli.version=$(VERSION)

# Pinned in test/tools/go.mod. kustomize runs there, since it knows its folders by
# path; the linter runs in the module it is to look at.
KUSTOMIZE = $(GO) -C test/tools tool kustomize
LINT = $(GO) tool -modfile="$(CURDIR)/test/tools/go.mod" golangci-lint

# A go.work file in a parent directory must not change what is built.
export GOWORK := off
# The Go version of go.mod is fetched through the module proxy where another one is
# installed, also in images that set GOTOOLCHAIN=local.
export GOTOOLCHAIN := auto

# Modules with Go code.
MODULES := . test test/observability

.DEFAULT_GOAL := help

##@ Start here

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: testbed ## Show the packing on a real control plane on this machine.
	cd test && $(GO) run ./demo

# Compiles, and shows a made-up cluster packed: no control plane is needed.
.PHONY: example
example: ## Show on a built-in cluster what packing saves, and one decision; needs no cluster.
	@echo 'compiling: on a fresh machine about 5 minutes on 2 cores, later a second'
	@$(GO) run -C test ./programs/cmd/build -product
	@mkdir -p bin/reports
	bin/gpu-binpacker report --example --html bin/reports/example.html
	bin/gpu-binpacker explain --example
	@echo 'wrote bin/reports/example.html'

.PHONY: playground
playground: testbed ## Start a cluster with gpu-binpacker to try things on, until Ctrl-C; see PLAYGROUND=-h.
	cd test && $(GO) run ./playground $(PLAYGROUND)

.PHONY: test
test: ## Run all tests; stops at the first part that fails.
	@echo 'all tests, in 3 parts: on 2 cores about 20 minutes, the first time 45, since everything is compiled'
	@echo 'part 1 of 3: make test-unit'
	@$(MAKE) --no-print-directory test-unit
	@echo 'part 2 of 3: make test-integration'
	@$(MAKE) --no-print-directory test-integration
	@echo 'part 3 of 3: make test-observability'
	@$(MAKE) --no-print-directory test-observability

.PHONY: test-unit
test-unit: ## Run the tests that need nothing but Go, with the race detector.
	$(if $(RACE),,@echo 'no C compiler found: testing without the race detector')
	$(GO) test $(RACE) -timeout 10m $(TESTFLAGS) ./...

# Not cached, since the go command does not know that these tests depend on the
# manifests and the binaries. One package at a time, with -v: each test is shown as
# it runs, and none takes the CPU from another's control plane.
.PHONY: test-integration
test-integration: testbed ## Run the tests on a real control plane and those of the manifests.
	cd test && $(GO) build ./... && $(GO) test -count=1 -p=1 -v -timeout 30m $(TESTFLAGS) ./...

# A module of its own: Prometheus wants newer dependencies than the control plane.
.PHONY: test-observability
test-observability: ## Test metrics, alerts, runbooks and dashboard against each other.
	cd test/observability && $(GO) test -count=1 -timeout 30m $(TESTFLAGS) ./...

# Needs a browser, so it is no part of make test. Screenshots are in
# bin/reports/browser.
.PHONY: test-browser
test-browser: check-browser build test/browser/node_modules ## Open the HTML pages in headless Chromium; needs Node.js and npm as well.
	cd test && $(GO) run ./browser/pages -results browser/testdata/packing.json -output ../bin/browser
	cd test/browser && CHROMIUM='$(CHROMIUM)' node --test --test-concurrency=1 --test-reporter=spec

.PHONY: check-browser
check-browser:
	@test -n '$(CHROMIUM)' || { echo 'test-browser: no Chromium found; install it (on Debian: apt-get install chromium) or set CHROMIUM=path'; exit 1; }
	@command -v npm > /dev/null || { echo 'test-browser: no npm found; install Node.js 20 or newer with npm'; exit 1; }
	@node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2> /dev/null || { echo 'test-browser: needs Node.js 20 or newer'; exit 1; }

test/browser/node_modules: test/browser/package.json test/browser/package-lock.json
	cd test/browser && npm ci
	@touch $@

# All faults at their full size; test-integration has the short form.
SOAKTIME ?= 30m

.PHONY: soak
soak: testbed ## Create and delete pods for SOAKTIME while a replica is killed every minute.
	cd test && $(GO) test -count=1 -v -timeout 180m -run TestSoak ./faults -soak $(SOAKTIME)

.PHONY: test-faults
test-faults: testbed ## Break everything around the webhook while pods are created; 6 to 10 minutes.
	cd test && $(GO) test -count=1 -v -timeout 60m $(TESTFLAGS) ./faults -full

# test-integration has a short form with two attacks. Some attacks, and the row without
# any beside them: TESTFLAGS='-run "TestAttack/(none|forged)"'.
.PHONY: test-attack
test-attack: testbed ## Attack the webhook as a tenant and from the pod network, on 5,000 nodes; about 10 minutes.
	cd test && $(GO) test -count=1 -v -timeout 60m $(TESTFLAGS) ./attack -full

# COUNT times the burst of 64 pods on two replicas, with other work on two cores.
COUNT ?= 200

.PHONY: test-burst
test-burst: testbed ## Repeat the burst of 64 pods COUNT times while two cores are kept busy; 20 minutes.
	cd test && $(GO) test -count=$(COUNT) -v -timeout 60m -run 'TestPacking$$/burst' ./e2e -busy 2

# The tag keeps it out of make test: compiling for each platform takes minutes.
.PHONY: test-platforms
test-platforms: ## Build image and release files for all platforms and check them.
	cd test && $(GO) test -tags platforms -count=1 -v -timeout 60m $(TESTFLAGS) ./image/...

# Builds each version first, the first time for about 10 minutes.
SUITES ?=

.PHONY: test-versions
test-versions: ## Test on Kubernetes VERSIONS='1.34.4 1.36.3', by default on all in docs/compatibility.md, and write the table there.
	cd test && $(GO) run ./versions $(if $(VERSIONS),-versions '$(VERSIONS)') $(if $(SUITES),-suites '$(SUITES)')

# OLD and NEW are Kubernetes versions, FROM a commit of gpu-binpacker.
.PHONY: test-upgrade
test-upgrade: testbed ## Upgrade control plane (OLD= to NEW=) and gpu-binpacker (FROM=, and back) under a running webhook; 5 minutes once built.
	cd test && $(GO) run ./programs/cmd/build -kubernetes $(or $(OLD),1.35.4) -kubernetes $(or $(NEW),1.36.3)
	cd test && $(GO) test -tags upgrade -count=1 -v -timeout 40m $(TESTFLAGS) ./upgrade -old $(or $(OLD),1.35.4) -new $(or $(NEW),1.36.3) -from $(or $(FROM),HEAD~1)

# The tag keeps it out of make test, since it takes minutes.
.PHONY: test-profiles
test-profiles: testbed ## Show the packing under other profiles of the scheduler than its default one; 5 minutes.
	cd test && $(GO) test -count=1 -v -timeout 30m -tags profiles $(TESTFLAGS) ./profiles

##@ Build

# With the flags of the test bed and of tests, so that nothing is compiled twice. What is
# shipped is built by cross below.
.PHONY: build
build: ## Build bin/gpu-binpacker.
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/gpu-binpacker .

# $(call binary,linux/amd64) is where $(call cross,linux/amd64) builds.
binary = $(abspath $(OUTPUT))/platforms/$(subst /,_,$1)
define cross
CGO_ENABLED=0 GOOS=$(word 1,$(subst /, ,$1)) GOARCH=$(word 2,$(subst /, ,$1)) \
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o '$(call binary,$1)' .

endef

.PHONY: image
image: ## Build the image for all its platforms into bin/image.tar, without a container engine.
	$(foreach platform,$(IMAGE_PLATFORMS),$(call cross,$(platform)))
	cd test && $(GO) run ./image build -version '$(VERSION)' -revision "$$(git rev-parse HEAD 2>/dev/null)" \
		-created '$(SOURCE_DATE_EPOCH)' -output '$(abspath $(OUTPUT))/image.tar' -digest '$(abspath $(OUTPUT))/image.digest' \
		$(foreach platform,$(IMAGE_PLATFORMS),'$(platform)=$(call binary,$(platform))')

.PHONY: push
push: ## Push bin/image.tar as IMAGE, for example IMAGE=registry.example.com/gpu-binpacker:v0.1.0.
	@test -f '$(OUTPUT)/image.tar' || { echo 'run make image first'; exit 1; }
	cd test && $(GO) run ./image push -archive '$(abspath $(OUTPUT))/image.tar' '$(IMAGE)'

.PHONY: image-engine
image-engine: ## Build the image IMAGE for this machine's platform with CONTAINER_TOOL and the Dockerfile.
	$(CONTAINER_TOOL) build --build-arg VERSION='$(VERSION)' -t '$(IMAGE)' .

.PHONY: manifests
manifests: match-conditions ## Render everything to install, with IMAGE, into bin/install.yaml.
	@mkdir -p bin/manifests
	@printf '%s\n' \
		'apiVersion: kustomize.config.k8s.io/v1beta1' \
		'kind: Kustomization' \
		'resources: [../../config/default]' \
		'sortOptions: {order: legacy}' > bin/manifests/kustomization.yaml
	cd bin/manifests && $(GO) tool -modfile="$(CURDIR)/test/tools/go.mod" kustomize edit set image 'gpu-binpacker=$(IMAGE)'
	$(KUSTOMIZE) build ../../bin/manifests > bin/install.yaml.tmp
	@mv bin/install.yaml.tmp bin/install.yaml
	@echo 'wrote bin/install.yaml with image $(IMAGE)'

# $(call release,archives FLAGS) runs one command of test/image/release.
release = cd test && $(GO) run ./image/release $1

# Each file refers to the image by the digest in bin/image.digest, under IMAGE.
.PHONY: release-files
release-files: ## Make the other files of release VERSION, for the IMAGE that make image built, in bin/release.
	@test -f '$(OUTPUT)/image.digest' || { echo 'run make image first'; exit 1; }
	rm -rf '$(OUTPUT)/release' && mkdir -p '$(OUTPUT)/release'
	$(foreach platform,$(PLUGIN_PLATFORMS),$(call cross,$(platform)))
	$(call release,archives -version '$(VERSION)' -created '$(SOURCE_DATE_EPOCH)' -license ../LICENSE \
		-output '$(abspath $(OUTPUT))/release' $(foreach platform,$(PLUGIN_PLATFORMS),'$(platform)=$(call binary,$(platform))'))
	$(call release,krew -version '$(VERSION)' -template ../.krew.yaml \
		-archives '$(abspath $(OUTPUT))/release' -output '$(abspath $(OUTPUT))/release/gpu-binpacker.yaml')
	$(call release,chart -version '$(VERSION)' -created '$(SOURCE_DATE_EPOCH)' -chart ../config/helm/gpu-binpacker \
		-image "$(IMAGE)@$$(cat '$(OUTPUT)/image.digest')" -output '$(abspath $(OUTPUT))/release')
	$(call release,sbom -version '$(VERSION)' -created '$(SOURCE_DATE_EPOCH)' \
		-output '$(abspath $(OUTPUT))/release' $(foreach platform,$(PLUGIN_PLATFORMS),'$(platform)=$(call binary,$(platform))'))
	$(MAKE) manifests IMAGE="$(IMAGE)@$$(cat '$(OUTPUT)/image.digest')"
	cp bin/install.yaml '$(OUTPUT)/release/install.yaml'
	$(call release,checksums '$(abspath $(OUTPUT))/release')

# Further Kubernetes versions to build, for example KUBERNETES='1.34.4 1.35.4'. Tests
# run on one of them with GPU_BINPACKER_TEST_KUBERNETES=1.34.4.
KUBERNETES ?=

.PHONY: testbed
testbed: ## Build the control plane that tests and demo run on (once, some minutes); further versions with KUBERNETES=.
	@echo 'building the control plane: on a fresh machine about 15 minutes on 2 cores, later a second'
	cd test && $(GO) run ./programs/cmd/build $(foreach version,$(KUBERNETES),-kubernetes '$(version)')

# What .github/workflows/testbed.yaml publishes, so that make testbed can fetch it: the checksums
# in bin/testbed/prebuilt.txt belong into test/programs.
.PHONY: testbed-release
testbed-release: ## Build the control plane for all platforms into bin/testbed; takes long.
	cd test && $(GO) run ./programs/cmd/build -release '$(CURDIR)/bin/testbed'

.PHONY: clean
clean: ## Remove everything that was built.
	rm -rf bin

##@ Develop

.PHONY: generate
generate: match-conditions ## Update the generated manifests, chart files and docs/configuration.md.
	cd test && $(GO) run ./chart/cmd/generate && $(GO) run ./configdoc

# What make manifests needs up to date: the webhook's filter.
.PHONY: match-conditions
match-conditions:
	@mkdir -p bin
	@$(MAKE) --no-print-directory -s print-match-conditions > bin/match_conditions.yaml
	mv bin/match_conditions.yaml config/webhook/match_conditions.yaml

.PHONY: print-match-conditions
print-match-conditions:
	@echo '# Generated from the resource names in ../manager/configuration.yaml by'
	@echo '# `make generate`. Do not edit.'
	@$(GO) run . match-conditions --config config/manager/configuration.yaml

.PHONY: format
format: ## Format the Go code.
	$(LINT) fmt

.PHONY: lint
lint: ## Check format, vet and lint every module; changes nothing.
	@echo 'gofmt'; unformatted=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .); \
		test -z "$$unformatted" || { echo "run make format for:"; echo "$$unformatted"; exit 1; }
	@echo 'golangci-lint (the first run builds it, some minutes)'; $(LINT) version
	@set -e; for module in $(MODULES); do \
		echo "go vet and golangci-lint in $$module"; \
		(cd $$module && $(GO) vet ./... && $(LINT) run ./...); \
	done

.PHONY: verify
verify: ## Check what CI enforces besides the tests; changes nothing.
	@mkdir -p bin
	@echo 'generated files'
	@$(MAKE) --no-print-directory -s print-match-conditions > bin/match_conditions.yaml
	diff -u config/webhook/match_conditions.yaml bin/match_conditions.yaml
	@set -e; for module in $(MODULES) test/tools; do \
		echo "go mod tidy -diff in $$module"; \
		(cd $$module && $(GO) mod tidy -diff); \
	done
	@$(MAKE) --no-print-directory licenses vuln lint

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each, for example FUZZTIME=10m.
	@grep -r --include='*_test.go' --exclude-dir=bin -o '^func Fuzz[A-Za-z]*' . | sort | \
	while IFS=': ' read -r file _ target; do \
		echo "$$target in $$(dirname $$file)"; \
		$(GO) -C "$$(dirname $$file)" test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5s . < /dev/null || exit 1; \
	done

.PHONY: bench
bench: ## Run the benchmarks: requests, and decisions by cluster size next to naive ones.
	$(GO) test -run '^$$' -bench . -benchmem -timeout 30m $(TESTFLAGS) ./...
	cd test && $(GO) run ./bench/decide

# BASE is any commit: by default the previous one, or HEAD if there are changes.
.PHONY: bench-compare
bench-compare: ## Compare the Go benchmarks with those of commit BASE, in turns, by benchstat; see COMPAREFLAGS=-h.
	cd test && $(GO) run ./bench/compare $(if $(BASE),-base '$(BASE)') $(COMPAREFLAGS)

.PHONY: bench-packing
bench-packing: testbed ## Compare packing side by side: MODE=quick|full, TRACE=folder of the openb trace.
	cd test && $(GO) run ./bench/packing -mode $(or $(MODE),quick) $(if $(TRACE),-trace '$(abspath $(TRACE))') $(PACKINGFLAGS)

.PHONY: bench-admission
bench-admission: ## Compare requests over HTTPS with webhooks that do nothing or look at everything; see ADMISSIONFLAGS=-h.
	cd test && $(GO) run ./bench/admission $(ADMISSIONFLAGS)

.PHONY: bench-e2e
bench-e2e: testbed ## Measure pods created and bound per second with no webhook, one that does nothing, and ours.
	cd test && $(GO) run ./bench/e2e $(E2EFLAGS)

.PHONY: bench-scale
bench-scale: ## Measure memory, start and CPU with 5,000 nodes and 150,000 pods; see SCALEFLAGS=-h.
	cd test && $(GO) run ./bench/scale $(SCALEFLAGS)

.PHONY: bench-attack
bench-attack: ## Fill every bound of memory at once with 5,000 nodes and 150,000 pods, and see that the limit holds; 3 minutes.
	cd test && $(GO) run ./bench/scale -attack $(or $(ATTACKTIME),1m) $(SCALEFLAGS)

# What code that is linked into the binary may be licensed under.
LICENSES := Apache-2.0,MIT,BSD-2-Clause,BSD-3-Clause,ISC,MPL-2.0

# Its warnings, about assembly in dependencies, are shown only with a failure.
.PHONY: licenses
licenses: ## Check the licenses of everything that is linked into the binary.
	@mkdir -p bin
	@echo 'go-licenses: only $(LICENSES)'
	@$(GO) tool -modfile=test/tools/go.mod go-licenses check --allowed_licenses='$(LICENSES)' . > bin/licenses.txt 2>&1 || \
		{ cat bin/licenses.txt; exit 1; }

# Fails on findings and on every error but that of fetching the database.
.PHONY: vuln
vuln: ## Look for known vulnerabilities; skipped where vuln.go.dev cannot be reached.
	@mkdir -p bin
	@if $(GO) tool -modfile=test/tools/go.mod govulncheck ./... > bin/govulncheck.txt 2>&1; then \
		echo 'govulncheck: no known vulnerability is called'; \
	elif grep -q '^govulncheck: fetching vulnerabilities' bin/govulncheck.txt; then \
		echo 'govulncheck: skipped: vulnerability database not reachable'; \
	else \
		cat bin/govulncheck.txt; exit 1; \
	fi
