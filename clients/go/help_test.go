package dpnoise

import (
	"errors"
	"math/rand"
	"os"
	"regexp"
	"strings"
	"testing"
)

const (
	unary  = `{"epsilon":1.0,"k":15,"p":1024,"planes":11,"protocol":"optimized_unary_encoding","q":551,"version":1}`
	other  = `{"epsilon":2.1972245773362196,"k":9,"p":3,"planes":2,"protocol":"unary_encoding","q":1,"version":1}`
	mean   = `{"epsilon":1.0,"k":2,"keep":473,"planes":10,"protocol":"duchi_mean","version":1,"width":1}`
	sketch = `{"epsilon":2.0,"p":1497,"planes":11,"protocol":"count_mean_sketch","q":551,"rows":3,"seed":1,` +
		`"version":1,"width":16}`
	// With d = 1 all of a report follows from the memo.
	oneBit = `{"d":1,"epsilon":0.1,"k":40,"p":8601,"planes":14,"protocol":"d_bit_flip","q":7783,"version":1}`
)

// must takes what a test needs and does not check.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func parse(t *testing.T, specification string, options ...Option) *Protocol {
	t.Helper()
	p := must(ParseProtocol([]byte(specification), options...))
	t.Cleanup(func() { p.Close() })
	return p
}

// fixed are always the same random bytes.
func fixed(seed int64) Option { return WithRandom(rand.New(rand.NewSource(seed))) }

// fails checks an error, and that it does not show the private values of these tests, which all begin with 98765.
func fails(t *testing.T, err error, status Status, part string) {
	t.Helper()
	if !errors.Is(err, status) {
		t.Errorf("got the error %v, expected one of %v", err, status)
		return
	}
	if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "98765") {
		t.Errorf("got %q, expected %q in it, and no private value", err, part)
	}
}

func TestTheReadmeShowsCodeThatTheTestsRun(t *testing.T) {
	readme := string(must(os.ReadFile("README.md")))
	examples := string(must(os.ReadFile("example_test.go")))
	dense := func(code string) string { return strings.Join(strings.Fields(code), " ") }
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme, -1)
	if len(blocks) < 2 {
		t.Error("the README has too few examples")
	}
	for _, block := range blocks {
		if !strings.Contains(dense(examples), dense(block[1])) {
			t.Errorf("example_test.go lacks\n%s", block[1])
		}
	}
}
