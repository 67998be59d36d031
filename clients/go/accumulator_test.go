package dpnoise

import (
	"bytes"
	"math"
	"testing"
)

func collector(t *testing.T, p *Protocol) *Accumulator {
	t.Helper()
	a := must(p.NewAccumulator())
	t.Cleanup(func() { a.Close() })
	return a
}

func TestTheEstimateIsNearTheTruth(t *testing.T) {
	p := parse(t, unary, fixed(1)) // the same in each run, so that this test never fails by chance
	values := make([]int64, 100_000)
	truth := make([]float64, p.K())
	for i := range values {
		values[i] = int64(i * i % 7)
		truth[values[i]]++
	}
	a := collector(t, p)
	if err := a.AddReports(must(p.Reports(values))); err != nil {
		t.Fatal(err)
	}
	counts, standardErrors, err := a.Estimate()
	if err != nil || len(counts) != 15 || len(standardErrors) != 15 {
		t.Fatalf("got %v, %v, %v", counts, standardErrors, err)
	}
	for v, count := range counts {
		if standardErrors[v] > 700 || math.Abs(count-truth[v]) > 4*standardErrors[v] {
			t.Errorf("%d: estimated %.0f with a standard error of %.0f, and it is %.0f", v, count, standardErrors[v], truth[v])
		}
	}
}

func TestHoweverReportsComeTheStateIsTheSame(t *testing.T) {
	values := []int64{1, 2, 3, 3, 3, 14}
	p := parse(t, unary, fixed(1))
	messages := append(must(p.Messages(values)), []byte{}, []byte("no message"), nil)
	all := collector(t, p)
	if err := all.Add(messages...); err != nil {
		t.Fatal(err)
	}
	single, other := collector(t, p), collector(t, p)
	for i, message := range messages {
		if err := []*Accumulator{single, other}[i%2].Add(message); err != nil {
			t.Fatal(err)
		}
	}
	if err := single.Merge(other); err != nil {
		t.Fatal(err)
	}
	state := must(all.MarshalBinary())
	if !bytes.Equal(state, must(single.MarshalBinary())) {
		t.Error("the states differ")
	}
	n, rejected, err := all.Counts()
	if n != 6 || rejected != 3 || err != nil {
		t.Errorf("got %d, %d, %v", n, rejected, err)
	}
	read := must(p.ParseAccumulator(state))
	if !bytes.Equal(state, must(read.MarshalBinary())) {
		t.Error("the state that was read differs")
	}
	fails(t, read.Merge(read), ErrParameter, "another accumulator")
	if n, rejected, _ := read.Counts(); n != 6 || rejected != 3 {
		t.Errorf("merged with itself it has %d and %d", n, rejected)
	}
	if err := read.Add(); err != nil {
		t.Error(err)
	}
	if err := read.AddReports(nil); err != nil {
		t.Error(err)
	}
}

func TestStatesAndReportsAreRefused(t *testing.T) {
	p := parse(t, unary)
	state := must(collector(t, p).MarshalBinary())
	damaged := append([]byte(nil), state...)
	damaged[len(damaged)-9] ^= 1
	for _, bytes := range [][]byte{nil, state[1:], damaged, must(collector(t, parse(t, other)).MarshalBinary())} {
		_, err := p.ParseAccumulator(bytes)
		fails(t, err, ErrState, "")
	}
	fails(t, collector(t, p).Merge(collector(t, parse(t, other))), ErrState, "")
	fails(t, collector(t, p).AddReports([]byte{1}), ErrParameter, "")
	_, _, err := collector(t, parse(t, mean)).Estimate()
	fails(t, err, ErrParameter, "counted by value")
}
