# The few commands of the project. Everything real is in scripts/ (TypeScript); this is glue.
# Needs: linux x64 or arm64, Node >= 20 with npm >= 10, make. The Node that runs everything is locked in package-lock.json.

export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
STAMP := node_modules/.installed

.PHONY: help demo demo-clean test check bench soak test-crash install
.DEFAULT_GOAL := help

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## Install the locked dependencies (no install script runs)

$(STAMP): package-lock.json
	@node -e 'if (Number(process.versions.node.split(".")[0]) < 20) { console.error("Node " + process.versions.node + " is too old to install with: use Node 20 or newer"); process.exit(1) }'
	@npm ci --ignore-scripts --no-audit --no-fund
	@touch $(STAMP)

demo: $(STAMP) ## From an empty folder to a joined zone, on loopback; ARGS=--once exits when the zone is Ready
	@node scripts/demo.ts $(ARGS)

demo-clean: ## Remove what a demo left in .demo/; refused while it runs
	@if [ -d .demo ]; then node scripts/demo.ts clean; fi

test: $(STAMP) ## Every test this machine can run, with a list of what was left out
	@node scripts/test.ts $(ARGS)

check: $(STAMP) ## The quick gate: format, lint, types, house rules, dependencies, generated files, unit tests
	@node scripts/check.ts $(ARGS)

bench: $(STAMP) ## Benchmarks, as tables; ARGS=storage|kapi|kryton|… for one
	@node scripts/bench.ts $(ARGS)

soak: $(STAMP) ## Very long runs: leaks, growth, long conformance checks
	@node scripts/soak.ts $(ARGS)

test-crash: $(STAMP) ## Kill -9 rounds with recorded clients; the result goes to docs/trust.md
	@node scripts/test-crash.ts $(ARGS)
