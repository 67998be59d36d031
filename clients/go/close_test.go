package dpnoise

import (
	"runtime"
	"testing"
)

// uses are all calls that use an object.
func uses(
	p *Protocol, memo *Memo, a *Accumulator, s *Sampler, real *Mechanism[float64], whole *Mechanism[int64],
) map[string]func() error {
	second := func(_ any, err error) error { return err }
	return map[string]func() error{
		"Message":        func() error { return second(p.Message(1)) },
		"Messages":       func() error { return second(p.Messages([]int64{1})) },
		"Reports":        func() error { return second(p.Reports(nil)) },
		"NewAccumulator": func() error { return second(p.NewAccumulator()) },
		"WithMemo":       func() error { return second(p.WithMemo(memo, "What is it?")) },
		"Memo.Bytes":     func() error { return second(memo.Bytes()) },
		"Add":            func() error { return a.Add() },
		"AddReports":     func() error { return a.AddReports(nil) },
		"Merge":          func() error { return a.Merge(a) },
		"MarshalBinary":  func() error { return second(a.MarshalBinary()) },
		"Counts": func() error {
			_, _, err := a.Counts()
			return err
		},
		"Estimate": func() error {
			_, _, err := a.Estimate()
			return err
		},
		"Fill":             func() error { return s.Fill([]int64{1}) },
		"Release":          func() error { return second(real.Release([]float64{1})) },
		"Error":            func() error { return second(real.Error(0.5, 1)) },
		"discrete Release": func() error { return second(whole.Release([]int64{1})) },
	}
}

func TestAfterCloseThereIsAnError(t *testing.T) {
	p := must(ParseProtocol([]byte(unary)))
	memo := must(NewMemo(1))
	a := must(p.NewAccumulator())
	s := must(NewDiscreteLaplaceSampler(1))
	real := must(Laplace{Epsilon: 1, Sensitivity: 1}.Mechanism())
	whole := must(DiscreteLaplace{Epsilon: 1, Sensitivity: 1}.Mechanism())
	for _, object := range []interface{ Close() error }{p, memo, a, s, real, whole} {
		if err := object.Close(); err != nil {
			t.Error(err)
		}
		fails(t, object.Close(), ErrHandle, "freed")
	}
	for name, use := range uses(p, memo, a, s, real, whole) {
		if err := use(); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			fails(t, err, ErrHandle, "freed")
		}
	}
	if p.K() != 15 || p.Takes() != Integers {
		t.Error("the facts are gone")
	}
}

func TestObjectsThatWereNotMadeAreRefused(t *testing.T) {
	all := uses(&Protocol{}, &Memo{}, &Accumulator{}, &Sampler{}, &Mechanism[float64]{}, &Mechanism[int64]{})
	for name, use := range all {
		if err := use(); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			fails(t, err, ErrHandle, "never given")
		}
	}
	if err := (&Memo{}).Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsForgottenIsFreed(t *testing.T) {
	same := func(memo *Memo) *Memo { return &Memo{&object{handle: memo.handle}} } // has no finalizer
	kept := must(NewMemo(1))
	forgotten := func() *Memo { return same(must(NewMemo(1))) }()
	collect(t, func() bool {
		_, err := forgotten.Bytes()
		return err != nil
	})
	_, err := forgotten.Bytes()
	fails(t, err, ErrHandle, "freed")
	if _, err := same(kept).Bytes(); err != nil {
		t.Errorf("what is in use was freed: %v", err)
	}
	runtime.KeepAlive(kept)
}
