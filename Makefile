# Burrow. `make help` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# libvirt is loaded at run time, so the CLI works on machines without it.
TAGS    := libvirt_dlopen,libvirt_without_lxc
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X burrow.dev/burrow/internal/buildinfo.version=$(VERSION)
TOOL    := go tool -modfile=$(CURDIR)/tools/go.mod
GOFILES := $(shell git ls-files '*.go' ':!*.pb.go' 2>/dev/null)

export GOFLAGS := -buildvcs=false -tags=$(TAGS)

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: packages
packages: ## Name and install the host packages that building, testing and running need
	@scripts/host-packages.sh --install

.PHONY: test-packages
test-packages: ## The same, with what only the tests need
	@scripts/host-packages.sh --install test

.PHONY: build
build: ## Build bin/burrow and bin/burrow-devstack
	go build -ldflags '$(LDFLAGS)' -o bin/burrow .
	cd devstack && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -ldflags '-s -w' -o ../bin/burrow-devstack .

.PHONY: demo
demo: packages build ## From nothing to a server that Ansible has configured
	@scripts/demo.sh

.PHONY: demo-clean
demo-clean: ## Take away everything the demo made
	@scripts/demo-clean.sh

.PHONY: check
check: test-packages ## Format, vet, staticcheck, workflowcheck, file rules: what CI runs before the tests
	@scripts/check.sh

.PHONY: test
test: test-packages build ## Everything: unit, replay, integration on real parts, one end-to-end run
	@scripts/test.sh

.PHONY: test-short
test-short: build ## The tests that need no guest (seconds to a few minutes)
	@scripts/test.sh -short

.PHONY: test-faults
test-faults: build ## Break things under every step of every operation (an hour and more)
	@scripts/test-faults.sh

.PHONY: guarantees
guarantees: build ## Run the whole matrix of faults and write docs/guarantees.md
	@scripts/test-faults.sh guarantees

.PHONY: bench
bench: test-packages build ## Measure what the README promises, as ratios in one run
	@scripts/bench.sh

.PHONY: proto
proto: ## Generate the gateway's code from its .proto
	@scripts/proto.sh

.PHONY: schemas
schemas: build ## Write the JSON Schemas that editors fetch
	@for k in server network volume image playbook; do bin/burrow schema $$k > docs/schema/$$k.json; done

.PHONY: fmt
fmt: ## Format the code
	@$(TOOL) gofumpt -w $(GOFILES)

.PHONY: clean
clean: ## Remove what was built here
	rm -rf bin
