package dpnoise

import (
	"bytes"
	"errors"
	"io"
	"math/rand"
	"runtime"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

// reader is a function that reads.
type reader func(out []byte) (int, error)

func (r reader) Read(out []byte) (int, error) { return r(out) }

func TestTheSameBytesMakeTheSameReports(t *testing.T) {
	values := make([]int64, 1000)
	first := must(parse(t, unary, fixed(1)).Reports(values))
	if !bytes.Equal(first, must(parse(t, unary, fixed(1)).Reports(values))) {
		t.Error("the same bytes make other reports")
	}
	oneByOne := WithRandom(iotest.OneByteReader(rand.New(rand.NewSource(1))))
	if !bytes.Equal(first, must(parse(t, unary, oneByOne).Reports(values))) {
		t.Error("bytes that come one by one make other reports")
	}
	if bytes.Equal(first, must(parse(t, unary, fixed(2)).Reports(values))) {
		t.Error("other bytes make the same reports")
	}
	if bytes.Equal(first, must(parse(t, unary).Reports(values))) {
		t.Error("the system makes the same reports")
	}
}

func TestWhenTheReaderFailsNothingIsReleased(t *testing.T) {
	for name, fill := range map[string]reader{
		"fails": func([]byte) (int, error) { return 0, errors.New("no token") },
		"is short": func(out []byte) (int, error) {
			out[0] = 1
			return 1, io.EOF
		},
		"panics":                          func([]byte) (int, error) { panic("98765") },
		"panics with an error of its own": func(out []byte) (int, error) { return int(out[len(out)]), nil },
		"ends its goroutine": func([]byte) (int, error) {
			runtime.Goexit()
			return 0, nil
		},
	} {
		random := WithRandom(fill)
		p := parse(t, unary, random)
		sampler := must(NewDiscreteGaussianSampler(3, random))
		laplace := must(Laplace{Epsilon: 1, Sensitivity: 1}.Mechanism(random))
		for i := 0; i < 2; i++ { // the second call finds nothing locked
			message, err := p.Message(7)
			fails(t, err, ErrRandomness, "the given generator returned 1")
			out := []int64{98765, 98765}
			fails(t, sampler.Fill(out), ErrRandomness, "the given generator returned 1")
			released, err := laplace.Release([]float64{98765})
			fails(t, err, ErrRandomness, "the given generator returned 1")
			if message != nil || released != nil || (out[0] != 98765 && out[0] != 0) {
				t.Errorf("a reader that %s: got %x, %v, %v", name, message, out, released)
			}
		}
	}
}

func TestAReaderIsNeeded(t *testing.T) {
	_, err := ParseProtocol([]byte(unary), WithRandom(nil))
	fails(t, err, ErrParameter, "reader must not be nil")
}

func TestAReaderIsUsedByOneCallAtATime(t *testing.T) {
	entered, leave := make(chan bool), make(chan bool)
	p := parse(t, unary, WithRandom(reader(func(out []byte) (int, error) {
		entered <- true
		<-leave
		return len(out), nil
	})))
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		defer group.Done()
		if _, err := p.Message(7); err != nil {
			t.Error(err)
		}
	}()
	<-entered
	_, err := p.Message(7)
	fails(t, err, ErrRandomness, "in use by another call")
	close(leave)
	go func() {
		for range entered {
		}
	}()
	group.Wait()
}

func TestAReaderMayCallTheLibrary(t *testing.T) {
	inner := parse(t, unary)
	p := parse(t, unary, WithRandom(reader(func(out []byte) (int, error) {
		_, err := inner.Message(98765)
		fails(t, err, ErrData, "k = 15")
		return rand.Read(out)
	})))
	if _, err := p.Message(7); err != nil {
		t.Error(err)
	}
}

func TestAReaderIsKeptAsLongAsItMayBeCalled(t *testing.T) {
	gone := make(chan bool)
	made := func() *Protocol {
		source := &struct{ io.Reader }{rand.New(rand.NewSource(1))}
		runtime.SetFinalizer(source, func(*struct{ io.Reader }) { close(gone) })
		p := must(ParseProtocol([]byte(oneBit), WithRandom(source)))
		defer p.Close() // the protocol with the memo uses the reader after that
		return must(p.WithMemo(must(NewMemo(1)), "What is it?"))
	}()
	for i := 0; i < 5; i++ {
		runtime.GC()
		if _, err := made.Message(7); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-gone:
		t.Fatal("the reader is gone, and may still be called")
	default:
	}
	runtime.KeepAlive(made)
	collect(t, func() bool {
		select {
		case <-gone:
			return true
		default:
			return false
		}
	})
}

func TestAReaderIsKeptDuringACall(t *testing.T) {
	reads := 0
	random := reader(func(out []byte) (int, error) {
		if reads++; reads < 5 {
			for i := 0; i < 5; i++ {
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
		}
		return rand.Read(out)
	})
	// Nobody refers to the protocol after the call has begun.
	_, err := must(ParseProtocol([]byte(unary), WithRandom(random))).Reports(make([]int64, 100_000))
	if err != nil || reads < 2 {
		t.Errorf("after %d reads: %v", reads, err)
	}
}

// collect collects garbage until something has happened. Finalizers have a goroutine of their own, which may take a
// while.
func collect(t *testing.T, happened func() bool) {
	t.Helper()
	for i := 0; i < 1000; i++ {
		runtime.GC()
		if happened() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("the garbage collector never freed it")
}
