# What the Makefiles of the clients share: `make -C clients/go test` builds and tests one client.
#
# A client has two targets of its own. `build` leaves in target/clients its programs, one of which is its runner: it
# answers what clients/shared asks. `check` does all that is to be done before the tests in Python: it builds, and runs
# the linters and tests of the language. Most is compiled anew each time, since make cannot know when the library or a
# header of the system has changed.

PYTHON ?= python3
ROOT := $(abspath ../..)
BUILT := $(ROOT)/target/clients
FFI := $(ROOT)/target/ffi

.DEFAULT_GOAL := test
.DELETE_ON_ERROR:
.PHONY: test build check ffi rust tools

# The environment of Python is the root's.
test:
	@$(MAKE) -C $(ROOT) test-clients CLIENTS=$(notdir $(CURDIR))

# The C library that is tested, wherever another one is installed.
ffi:
	@$(MAKE) -C ../c install PREFIX=$(FFI)

rust:
	@$(ROOT)/tools/check_tools.sh $(PYTHON)

# $(call needs,TOOLS,WHAT,PACKAGES)
needs = for tool in $(1); do command -v $$tool >/dev/null || { \
	echo "dpnoise needs $(2) ($$tool not found): 'apt-get install $(3)' on Debian or Ubuntu" >&2; exit 1; }; done
