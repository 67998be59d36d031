package dpnoise

// #include <dpnoise.h>
import "C"

// A Memo is the secrets of some people, from which everything is derived that stays the same in their reports, and how
// they answer each question. A device makes one for itself, once, and stores its bytes, after [Protocol.WithMemo], as the
// platform stores secrets.
type Memo struct {
	*object
}

// NewMemo draws the secrets of n people from the operating system's generator.
func NewMemo(n uint64) (*Memo, error) {
	o, err := newObject(func(handle *C.uint64_t) C.dpnoise_status { return C.dpnoise_memo_new(C.uint64_t(n), handle) })
	if err != nil {
		return nil, err
	}
	return &Memo{o}, nil
}

// ParseMemo reads the bytes that [Memo.Bytes] returned. Damaged ones are refused with [ErrState]: a device that then
// makes a new memo answers anew, which spends epsilon again.
func ParseMemo(bytes []byte) (*Memo, error) {
	o, err := newObject(func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_memo_from_bytes((*C.uint8_t)(pointer(bytes)), C.size_t(len(bytes)), handle)
	})
	if err != nil {
		return nil, err
	}
	return &Memo{o}, nil
}

// Bytes returns the bytes of the memo. Whoever has them has the secrets: overwrite them when they are stored.
func (m *Memo) Bytes() ([]byte, error) {
	return readBytes(func(out *C.uint8_t, capacity C.size_t, length *C.size_t) C.dpnoise_status {
		return C.dpnoise_memo_to_bytes(m.id(), out, capacity, length)
	}, m.object)
}
