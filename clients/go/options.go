package dpnoise

/*
#include <dpnoise.h>

extern int32_t dpnoiseGoFill(uintptr_t, uint8_t *, size_t);

static inline int32_t dpnoise_go_fill(void *source, uint8_t *out, size_t length) {
	return dpnoiseGoFill((uintptr_t)source, out, length);
}

static inline dpnoise_status dpnoise_go_generator(uintptr_t source, dpnoise_generator *out) {
	return dpnoise_generator_new(dpnoise_go_fill, (void *)source, out);
}
*/
import "C"

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/cgo"
	"unsafe"
)

// An Option changes how a protocol, a sampler or a mechanism works.
type Option func(*settings) error

type settings struct {
	threads   C.uint32_t
	limit     C.size_t
	generator *object // nil is the operating system's
}

func newSettings(options []Option) (settings, error) {
	s := settings{threads: C.uint32_t(runtime.GOMAXPROCS(0)), limit: C.DPNOISE_COUNTER_LIMIT}
	for _, option := range options {
		if err := option(&s); err != nil {
			return settings{}, err
		}
	}
	return s, nil
}

// WithThreads shares the work of large calls by up to n threads, at least 1. Without it there are as many as
// [runtime.GOMAXPROCS] says.
func WithThreads(n int) Option {
	return func(s *settings) error {
		if n < 1 || n > math.MaxInt32 {
			return &Error{ErrParameter, fmt.Sprintf("threads must be from 1 to %d, got %d", math.MaxInt32, n)}
		}
		s.threads = C.uint32_t(n)
		return nil
	}
}

// WithLimit reads specifications and states whose counters have up to so many bytes. Without it there are 128 MiB, which
// suits what comes from others.
func WithLimit(bytes int) Option {
	return func(s *settings) error {
		if bytes < 0 {
			return &Error{ErrParameter, fmt.Sprintf("limit must be at least 0, got %d", bytes)}
		}
		s.limit = C.size_t(bytes)
		return nil
	}
}

// WithRandom takes random bytes from a reader in place of the operating system, for tests and for hardware tokens. One
// thread does all the work then.
//
// Privacy depends on these bytes: they must be uniform, independent, and nobody else's. If the reader fails or
// panics, or has too few bytes, nothing is released and the error is [ErrRandomness]. A call that finds the reader in
// use by another call of the same object fails like that, too. Objects made by different calls do not know of each
// other's readers: a reader that they share must be safe for concurrent use.
func WithRandom(reader io.Reader) Option {
	return func(s *settings) (err error) {
		if reader == nil {
			return &Error{ErrParameter, "reader must not be nil"}
		}
		s.generator, err = newGenerator(reader)
		return err
	}
}

// newGenerator makes a generator that reads from a reader. It is freed when no object uses it any more, and only then
// does the reader go: until that moment the library may call it.
func newGenerator(reader io.Reader) (*object, error) {
	source := cgo.NewHandle(reader)
	generator, err := newObject(func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_go_generator(C.uintptr_t(source), handle)
	})
	if err != nil {
		source.Delete()
		return nil, err
	}
	runtime.SetFinalizer(generator, nil)
	runtime.SetFinalizer(generator, func(generator *object) {
		generator.Close()
		source.Delete()
	})
	return generator, nil
}

// dpnoiseGoFill reads random bytes for the C library; 0 says that it did.
//
// The reader runs in a goroutine of its own: one that panics, or ends its goroutine as testing.T.FailNow does, must not
// unwind the frames of the library, which would never unlock or wipe what they hold.
//
//export dpnoiseGoFill
func dpnoiseGoFill(source C.uintptr_t, out *C.uint8_t, length C.size_t) C.int32_t {
	failed := make(chan bool)
	go func() {
		done := false
		defer func() {
			_ = recover() // its value might be anything, even a private one
			failed <- !done
		}()
		reader := cgo.Handle(source).Value().(io.Reader)
		_, err := io.ReadFull(reader, unsafe.Slice((*byte)(out), int(length)))
		done = err == nil
	}()
	if <-failed {
		return 1
	}
	return 0
}
