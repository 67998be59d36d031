// Package dpnoise makes reports for local differential privacy, collects them, and adds noise to statistics.
//
// A device reads a specification with [ParseProtocol] and answers with [Protocol.Message]. A collector counts messages
// with an [Accumulator]. A trusted server adds noise with a [Mechanism].
//
// The work is done by the C library of dpnoise, in constant time: time and memory addresses do not depend on private
// values. That holds from the call into the library on. What Go does with a value before is not covered: it may copy
// stacks, and strings cannot be wiped. Copies of private values that this package makes are wiped.
//
// Everything here may be used by several goroutines at once. Close frees an object. One that is not closed is freed
// after the garbage collector finds it. Secrets of a [Memo] are wiped then. Whoever uses an object after Close gets
// [ErrHandle].
package dpnoise

/*
#cgo pkg-config: dpnoise
#include <dpnoise.h>
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// HeaderBytes is the number of bytes of a message before its report.
const HeaderBytes = C.DPNOISE_HEADER_BYTES

func init() {
	if found := C.dpnoise_abi_version(); found != C.DPNOISE_ABI_VERSION {
		panic(fmt.Sprintf("dpnoise: the C library must have version %d of its interface, got %d: "+
			"build this program again with the header of the library that it loads", C.DPNOISE_ABI_VERSION, found))
	}
}

// object is an object of the C library. Its handle is a number that the library gives once, and refuses after it was
// freed, so nothing has to be remembered here.
type object struct {
	handle C.uint64_t
	// Go allocates objects below 16 bytes together, and runs no finalizer of one while another is in use.
	_ [8]byte
}

// newObject makes an object with a function that writes its handle.
func newObject(make func(handle *C.uint64_t) C.dpnoise_status, uses ...*object) (*object, error) {
	o := new(object)
	if err := call(func() C.dpnoise_status { return make(&o.handle) }, uses...); err != nil {
		return nil, err
	}
	runtime.SetFinalizer(o, (*object).Close)
	return o, nil
}

// Close frees the object. Calls that use it meanwhile end as if it were open. A second Close returns [ErrHandle].
func (o *object) Close() error {
	if o == nil {
		return nil
	}
	runtime.SetFinalizer(o, nil)
	return call(func() C.dpnoise_status { return C.dpnoise_free(o.handle) }, o)
}

// id is the handle, or 0 if the object was never made.
func (o *object) id() C.uint64_t {
	if o == nil {
		return 0
	}
	return o.handle
}

// call runs a call of the C library that uses some objects, and reads the message if it fails. The message is that of
// the thread, so the goroutine must not change threads between the two.
func call(f func() C.dpnoise_status, uses ...*object) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	status := f()
	// Otherwise the last use is when the handle is read, and the object might be freed before the library looks it up.
	runtime.KeepAlive(uses)
	if status == C.DPNOISE_STATUS_OK {
		return nil
	}
	return &Error{Status: Status(status), Message: C.GoString(C.dpnoise_error_message())}
}

// pointer is that to the first item, for a parameter of another type; nil if there are no items.
func pointer[T any](items []T) unsafe.Pointer {
	if len(items) == 0 {
		return nil
	}
	return unsafe.Pointer(&items[0])
}

// readBytes calls a function that writes bytes and their number, until they fit.
func readBytes(
	write func(out *C.uint8_t, capacity C.size_t, length *C.size_t) C.dpnoise_status, use *object,
) ([]byte, error) {
	var out []byte
	length := new(C.size_t)
	for {
		err := call(func() C.dpnoise_status {
			return write((*C.uint8_t)(pointer(out)), C.size_t(len(out)), length)
		}, use)
		if err == nil {
			return out[:*length], nil
		}
		if int(*length) <= len(out) {
			return nil, err
		}
		out = make([]byte, *length)
	}
}

// wipe overwrites a private copy. Its memory was passed to C, so the compiler cannot leave the writes out.
func wipe[T byte | int64 | float64](items []T) {
	for i := range items {
		items[i] = 0
	}
}
