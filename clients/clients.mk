# The C library, and the clients in other languages; included by the Makefile.
#
# Each client-LANGUAGE leaves a program that answers the tests, its runner, in target/clients/LANGUAGE. Most are compiled
# anew each time, since make cannot know when the library or a header of the system has changed.

# Where the C library is installed, and its parts.
PREFIX ?= target/ffi
FEATURES ?= client,collector,noise

# The languages whose clients are built and tested, and those that have tests of their own besides.
LANGUAGES := c cpp go java node chromium firefox
CLIENTS ?= $(LANGUAGES)
ifneq ($(filter-out $(LANGUAGES),$(CLIENTS)),)
$(error CLIENTS must be some of $(LANGUAGES), got $(CLIENTS))
endif
OWN_TESTS := $(filter go java,$(CLIENTS))

BUILT := target/clients
LIBRARY = $(abspath $(PREFIX))/lib

.PHONY: ffi header web build-clients test-clients test-go test-java $(CLIENTS:%=client-%)

ffi: | check-tools ## build the C library, FEATURES=client,collector,noise, and install it in PREFIX=target/ffi
	scripts/install_ffi.sh $(abspath $(PREFIX)) $(FEATURES)

header: | check-tools ## write clients/c/dpnoise.h from the Rust sources beside it
	DPNOISE_WRITE_HEADER=1 cargo test --package dpnoise-ffi --test all --locked header::

web: | check-tools ## build the npm package for browsers and node in clients/web/dist (needs binaryen; PROTOCOLS="a b" for a small one)
	scripts/build_web.sh $(PROTOCOLS)

build-clients: $(CLIENTS:%=client-%)

test-clients: build-clients $(OWN_TESTS:%=test-%) $(VENV)/.native $(VENV)/.extra-test
test-clients: docs ## test the clients in CLIENTS="c cpp go java node chromium firefox", each with its tools, and the playground
	DPNOISE_FFI=$(abspath $(PREFIX)) DPNOISE_TEST_CLIENTS="$(CLIENTS)" $(BIN)/python -m pytest -m 'not long' clients \
		--numprocesses auto --dist loadfile

# --- C and C++ --------------------------------------------------------------------------------------------------------

STRICT := -O2 -Wall -Wextra -Werror -pedantic
LINKED = $$(PKG_CONFIG_PATH=$(LIBRARY)/pkgconfig pkg-config --cflags --libs dpnoise) -Wl,-rpath,$(LIBRARY)

vpath %.c clients/c clients/c/tests
vpath %.cpp clients/c clients/c/tests

client-c: $(addprefix $(BUILT)/c/,runner example_report example_noise)

client-cpp: $(addprefix $(BUILT)/cpp/,runner example_collection)

$(BUILT)/c/%: %.c ffi | check-c-tools
	@mkdir -p $(@D)
	$(CC) -std=c11 $(STRICT) $< -o $@ $(LINKED)

$(BUILT)/cpp/%: %.cpp ffi | check-cpp-tools
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(STRICT) $< -o $@ $(LINKED)

# --- Go ---------------------------------------------------------------------------------------------------------------

# Go finds the library by pkg-config, and its programs by the path that is linked in. Nothing is fetched. Go cannot know
# whether the library is still the same, so the tests always run.
GO = PKG_CONFIG_PATH=$(LIBRARY)/pkgconfig CGO_LDFLAGS=-Wl,-rpath,$(LIBRARY) \
	CGO_ENABLED=1 GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local go

client-go: ffi | check-go-tools
	cd clients/go && $(GO) build -o $(abspath $(BUILT)/go/runner) ./internal/runner

test-go: client-go ## check and test the Go package (needs Go 1.19 and pkg-config)
	@badly=$$(gofmt -l clients/go) && test -z "$$badly" || { echo "gofmt -w" $$badly >&2; exit 1; }
	cd clients/go && $(GO) vet ./... && $(GO) test -race -count=1 ./...

# --- Java -------------------------------------------------------------------------------------------------------------

# JNA is Debian's libjna-java, or another jar.
JNA ?= /usr/share/java/jna.jar
JAVA := $(BUILT)/java
JAVAC := javac -Xlint:all -Werror --release 17
RUN_JAVA = java -Djna.library.path=$(LIBRARY) -cp $(JNA):$(abspath $(JAVA))/dpnoise.jar:$(abspath $(JAVA))/tests

client-java: ffi | check-java-tools check-jna
	rm -rf $(JAVA) && mkdir -p $(JAVA)
	$(JAVAC) -cp $(JNA) -d $(JAVA)/classes clients/java/src/io/github/dpnoise/*.java
	jar --create --file $(JAVA)/dpnoise.jar -C $(JAVA)/classes .
	$(JAVAC) -cp $(JAVA)/dpnoise.jar -d $(JAVA)/tests clients/java/test/Runner.java
	printf '#!/bin/sh\nexec %s Runner\n' '$(RUN_JAVA)' > $(JAVA)/runner && chmod +x $(JAVA)/runner

test-java: client-java ## check and test the Java classes (needs Java 17 and JNA)
	javadoc -quiet -Xdoclint:all -Werror -cp $(JNA) -d $(JAVA)/documentation clients/java/src/io/github/dpnoise/*.java
	$(JAVAC) -cp $(JAVA)/dpnoise.jar -d $(JAVA)/tests clients/java/examples/*.java
	$(JAVAC) -cp $(JNA):$(JAVA)/dpnoise.jar -d $(JAVA)/tests clients/java/test/io/github/dpnoise/*.java
	$(RUN_JAVA) io.github.dpnoise.Tests

check-jna:
	@test -e $(JNA) || { echo "dpnoise needs JNA for its Java classes ($(JNA) not found):" \
		"'apt-get install libjna-java' on Debian or Ubuntu, or make JNA=FILE" >&2; exit 1; }

# --- JavaScript -------------------------------------------------------------------------------------------------------

client-node client-chromium client-firefox: web
