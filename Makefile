# make without a target prints what there is to make.
SHELL := /bin/bash
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GO ?= go
TOOLS := $(CURDIR)/.tools
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT := mvdan.cc/gofumpt@v0.12.0

.PHONY: help
help: ## Print the targets.
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Start three nodes on eight simulated backends and show them at work; ARGS=--precise with KV cache events.
	bin/kvca demo $(ARGS)

.PHONY: build
build: ## Build bin/kvca, one static binary.
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/kvca ./cmd/kvca

.PHONY: test
test: format vet staticcheck deploy-check ## Check format, vet, staticcheck and what is deployed, and run every test with the race detector.
	$(GO) test -race -timeout 20m ./...
	$(GO) test -timeout 10m -run 'FollowUpsStay|TellerKnows|SourcesAgree' ./cluster

.PHONY: format
format: tools
	@out=$$($(TOOLS)/gofumpt -l cmd state router cluster proxy bench) || exit 1; \
	if [ -n "$$out" ]; then echo "not formatted (run gofumpt -w):"; echo "$$out"; exit 1; fi

.PHONY: vet
vet:
	$(GO) vet ./...

.PHONY: staticcheck
staticcheck: tools
	$(TOOLS)/staticcheck ./...

# The tools are built by whatever Go builds the project, at fixed versions.
.PHONY: tools
tools: $(TOOLS)/staticcheck $(TOOLS)/gofumpt

$(TOOLS)/staticcheck:
	GOBIN=$(TOOLS) $(GO) install $(STATICCHECK)

$(TOOLS)/gofumpt:
	GOBIN=$(TOOLS) $(GO) install $(GOFUMPT)

STAMP := $(shell date +%Y-%m-%d)
RESULTS := bench/results

.PHONY: bench
bench: build ## Benchmark the core, and the gateway's CPU beside a bare Go reverse proxy.
	$(GO) test -run '^$$' -bench . -benchmem ./state/... ./router | tee $(RESULTS)/$(STAMP)-go.txt
	$(GO) run ./bench/run routing -out $(STAMP)-routing.txt
	$(GO) run ./bench/run index -out $(STAMP)-index.txt
	$(GO) run ./bench/run cpu -gateways plain,kvca -out $(STAMP)-cpu.txt
	$(GO) run ./bench/run affinity -gateways kvca,kvca-two-phase,kvca-round-robin -out $(STAMP)-affinity.txt
	$(GO) run ./bench/run memory -gateways kvca -out $(STAMP)-memory.txt
	$(GO) run ./bench/run leavers -out $(STAMP)-leavers.txt
	$(GO) run ./bench/run world -out $(STAMP)-world.txt

.PHONY: bench-cluster
bench-cluster: build ## Measure what a cluster costs, keeps and survives.
	$(GO) run ./bench/run affinity -nodes 1,3,8 -out $(STAMP)-cluster-affinity.txt
	$(GO) run ./bench/run burst -out $(STAMP)-cluster-burst.txt
	$(GO) run ./bench/run cpu -nodes 3 -rounds 5 -slice 2500ms -out $(STAMP)-cluster-cpu.txt
	$(GO) run ./bench/run traffic -out $(STAMP)-cluster-traffic.txt
	$(GO) run ./bench/run idle -out $(STAMP)-cluster-idle.txt
	$(GO) run ./bench/run ready -out $(STAMP)-cluster-ready.txt
	$(GO) run ./bench/run owner-calls -out $(STAMP)-cluster-owner-calls.txt
	$(GO) run ./bench/run drills -out $(STAMP)-cluster-drills.txt

# Where the recorded traces lie; without them the slices in bench/trace/testdata are played.
TRACES ?=

.PHONY: sim
sim: ## Play traces in virtual time against other routers' rules; TRACES=DIR has the recorded ones.
	$(GO) run ./bench/run study -out $(RESULTS)/sim $(if $(TRACES),-traces $(TRACES))

.PHONY: bench-peers
bench-peers: build ## Install the peers and measure them in the same run.
	$(GO) run ./bench/run peers-install
	$(GO) run ./bench/run cpu -gateways all -out $(STAMP)-cpu-peers.txt

# The order of faults and whom they meet; the report names it.
SEED ?= 1

.PHONY: soak
soak: build ## Two million distinct prompts, a cluster that is parted, and an hour of one fault after the other.
	$(GO) run ./bench/run soak -out $(STAMP)-soak.txt
	$(GO) run ./bench/run partition -out $(STAMP)-cluster-partition.txt
	$(GO) run ./bench/run endure -time 1h -pause 3s -seed $(SEED) -out $(STAMP)-endure.txt

.PHONY: soak-short
soak-short: build ## A minute of one fault after the other around a busy cluster; SEED=N for another order.
	$(GO) run ./bench/run endure -time 60s -seed $(SEED)

.PHONY: operate
operate: build ## What operators do and are promised: rolling restarts, limits over eight nodes, a saturated node.
	$(GO) run ./bench/run rolling -out $(STAMP)-rolling.txt
	$(GO) run ./bench/run limits -out $(STAMP)-limits.txt
	$(GO) run ./bench/run saturate -out $(STAMP)-saturate.txt

.PHONY: fuzz
fuzz: ## Fuzz the decoders for a minute each.
	for p in $$($(GO) list ./state/... ./cluster/...); do \
	  for t in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    $(GO) test -run '^$$' -fuzz "^$$t$$" -fuzztime 60s $$p || exit 1; done; done

.PHONY: e2e
e2e: ## The Python clients, and two real vLLM engines where they can be installed.
	OUT=$(RESULTS)/$(STAMP)-e2e.txt bash bench/e2e/run.sh

# What is given to others. All times are the commit's, so that the same commit gives
# the same bytes.
NFPM := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
CYCLONEDX := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
RELEASE ?= bin/release
EPOCH ?= $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || echo 0))

.PHONY: release
release: $(TOOLS)/nfpm $(TOOLS)/cyclonedx-gomod ## Make archives, Debian packages, bills of materials and checksums in bin/release.
	$(GO) -C .deploy/release run . -root "$(CURDIR)" -tools "$(TOOLS)" -out "$(abspath $(RELEASE))" -version "$(VERSION)" -epoch "$(EPOCH)"

$(TOOLS)/nfpm:
	GOBIN=$(TOOLS) $(GO) install $(NFPM)

$(TOOLS)/cyclonedx-gomod:
	GOBIN=$(TOOLS) $(GO) install $(CYCLONEDX)

.PHONY: release-check
release-check: $(TOOLS)/nfpm $(TOOLS)/cyclonedx-gomod ## Make the last commit's release twice, in two places with nothing in common, and compare.
	GO="$(GO)" TOOLS="$(TOOLS)" bash .deploy/release/twice.sh

.PHONY: deploy-check
deploy-check: tools ## Hold manifests, chart, compose file and unit against Kubernetes' types, each other and kvca's flags.
	@out=$$($(TOOLS)/gofumpt -l .deploy) || exit 1; \
	if [ -n "$$out" ]; then echo "not formatted (run gofumpt -w):"; echo "$$out"; exit 1; fi
	cd .deploy/release && $(GO) vet . && $(GO) test .
	cd .deploy/check && $(GO) vet . && $(GO) test .

.PHONY: deploy-update
deploy-update: ## Copy the alerting rules into the manifests and the chart.
	cd .deploy/check && $(GO) test -run TestCopiesOfTheRulesAreCurrent . -update
