package dpnoise

// #include <dpnoise.h>
import "C"

import "fmt"

// Status says what kind of error an [Error] is. Compare with [errors.Is]: errors.Is(err, dpnoise.ErrRandomness).
type Status int

// The kinds of errors.
const (
	// ErrParameter: a public parameter is outside its range.
	ErrParameter Status = C.DPNOISE_STATUS_PARAMETER
	// ErrData: a private value cannot be used. The message does not show it.
	ErrData Status = C.DPNOISE_STATUS_DATA
	// ErrState: a specification, memo or state is damaged, or of another kind.
	ErrState Status = C.DPNOISE_STATUS_STATE
	// ErrRandomness: the source of randomness failed. Nothing was released.
	ErrRandomness Status = C.DPNOISE_STATUS_RANDOMNESS
	// ErrHandle: an object was closed, or was not made by a function of this package.
	ErrHandle Status = C.DPNOISE_STATUS_HANDLE
	// ErrMemory: the C library refused the memory that it was given.
	ErrMemory Status = C.DPNOISE_STATUS_MEMORY
	// ErrInternal: a defect of the library. Please report it.
	ErrInternal Status = C.DPNOISE_STATUS_INTERNAL
	// ErrAllocation: the C library could not allocate memory. Nothing was released, and all objects are as they were.
	ErrAllocation Status = C.DPNOISE_STATUS_ALLOCATION
)

// Error is one word for the status.
func (s Status) Error() string {
	words := [...]string{"ok", "parameter", "data", "state", "randomness", "handle", "memory", "internal", "allocation"}
	if s < 0 || int(s) >= len(words) {
		return fmt.Sprintf("status %d", int(s))
	}
	return words[s]
}

// An Error is returned by all functions that fail. It has no private data, and may be logged.
type Error struct {
	Status  Status // what kind of error it is
	Message string // what is wrong, and what is allowed
}

// Error is the message.
func (e *Error) Error() string { return "dpnoise: " + e.Message }

// Unwrap is the status, for [errors.Is].
func (e *Error) Unwrap() error { return e.Status }
