package dpnoise

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// together runs n goroutines at once.
func together(n int, run func(i int)) {
	var group sync.WaitGroup
	group.Add(n)
	for i := 0; i < n; i++ {
		go func(i int) {
			defer group.Done()
			run(i)
		}(i)
	}
	group.Wait()
}

func TestManyGoroutinesUseOneObject(t *testing.T) {
	p := parse(t, unary)
	a, sum := collector(t, p), collector(t, p)
	s := must(NewDiscreteLaplaceSampler(10))
	laplace := must(Laplace{Epsilon: 1, Sensitivity: 1}.Mechanism())
	values := []float64{1, 2, 3}
	together(16, func(i int) {
		for j := 0; j < 50; j++ {
			err := a.Add(must(p.Message(int64(i%15))), must(p.Message(7)))
			if err == nil {
				one := collector(t, p)
				err = one.Add(must(p.Message(7)))
				if err == nil {
					err = sum.Merge(one)
				}
			}
			if err == nil {
				_, err = a.MarshalBinary()
			}
			if err == nil {
				err = s.Fill(make([]int64, 10))
			}
			if err == nil {
				_, err = laplace.Release(values)
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	for a, want := range map[*Accumulator]uint64{a: 16 * 50 * 2, sum: 16 * 50} {
		if n, rejected, err := a.Counts(); n != want || rejected != 0 || err != nil {
			t.Errorf("%d messages were counted, and %d rejected, expected %d", n, rejected, want)
		}
	}
}

func TestAnErrorIsThatOfItsCall(t *testing.T) {
	together(64, func(i int) {
		for j := 1; j <= 200; j++ {
			_, err := NewDiscreteLaplaceSampler(-float64(1000*i + j))
			if want := fmt.Sprintf(", got -%d.0", 1000*i+j); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("got %v, expected %q at its end", err, want)
				return
			}
		}
	})
}

func TestCloseWhileOthersUseIt(t *testing.T) {
	for i := 0; i < 50; i++ {
		p := must(ParseProtocol([]byte(unary)))
		memo := must(NewMemo(3))
		together(8, func(i int) {
			if i == 7 {
				p.Close()
				memo.Close()
				return
			}
			for {
				message, err := p.Message(7)
				_, other := memo.Bytes()
				if err == nil && len(message) == 14 && (other == nil || errors.Is(other, ErrHandle)) {
					continue
				}
				if !errors.Is(err, ErrHandle) {
					t.Errorf("got %x, %v, %v", message, err, other)
				}
				return
			}
		})
	}
}
