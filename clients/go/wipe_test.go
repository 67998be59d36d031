package dpnoise

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"unsafe"
)

const wide = `{"bits":63,"epsilon":1.0,"keep":473,"planes":10,"protocol":"prefix_extension","rows":2,"seed":0,` +
	`"step":8,"version":1,"width":8}`

// pattern is private: bytes that occur nowhere else, made when they are needed, so that they are not in the program.
func pattern(n int) []byte {
	made := make([]byte, n)
	for i := range made {
		made[i] = byte(0x51 ^ i*37)
	}
	return made
}

//go:noinline
func reportText(t *testing.T, keep bool) {
	private := pattern(200)
	text := *(*string)(unsafe.Pointer(&private)) // shares memory, so that it can be wiped
	if _, err := parse(t, sketch).MessageOfText(text); err != nil {
		t.Error(err)
	}
	if !keep {
		wipe(private)
	}
}

//go:noinline
func reportInteger(t *testing.T) {
	private := pattern(8)
	private[7] = 1
	if _, err := parse(t, wide).Message(int64(binary.LittleEndian.Uint64(private))); err != nil {
		t.Error(err)
	}
	wipe(private)
}

//go:noinline
func reportNumber(t *testing.T) {
	private := pattern(8)
	private[7] = 0x3f // below 1
	private[6] = 0xe0
	if _, err := parse(t, mean).MessageOfNumber(math.Float64frombits(binary.LittleEndian.Uint64(private))); err != nil {
		t.Error(err)
	}
	wipe(private)
}

// remaining counts how often the pattern is in the memory of Go.
func remaining(t *testing.T) int {
	t.Helper()
	file := must(os.Create(filepath.Join(t.TempDir(), "heap")))
	defer file.Close()
	debug.WriteHeapDump(file.Fd())
	wanted := pattern(6)
	defer wipe(wanted) // otherwise the next call finds it
	return bytes.Count(must(os.ReadFile(file.Name())), wanted)
}

func TestCopiesOfPrivateValuesAreWiped(t *testing.T) {
	reportText(t, false)
	if n := remaining(t); n > 0 {
		t.Errorf("a text is in memory %d times", n)
	}
	reportInteger(t)
	if n := remaining(t); n > 0 {
		t.Errorf("an integer is in memory %d times", n)
	}
	reportNumber(t)
	if n := remaining(t); n > 0 {
		t.Errorf("a number is in memory %d times", n)
	}
	reportText(t, true) // the positive control
	if remaining(t) == 0 {
		t.Error("a text that is not wiped is not found")
	}
}
