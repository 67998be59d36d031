package main

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	dpnoise "github.com/dpnoise/dpnoise/clients/go"
)

func TestEveryLabelGetsNoise(t *testing.T) {
	var in, out strings.Builder
	for i := 0; i < 1000; i++ {
		fmt.Fprintf(&in, "label %d,1000\n", i)
	}
	random := dpnoise.WithRandom(rand.New(rand.NewSource(1)))
	if err := publish(0.5, strings.NewReader(in.String()), &out, random); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	changed, sum := 0, 0
	for i, line := range lines[:1000] {
		var label, count int
		if _, err := fmt.Sscanf(line, "label %d,%d", &label, &count); err != nil || label != i {
			t.Fatalf("line %d is %q", i, line)
		}
		if count != 1000 {
			changed++
		}
		sum += count - 1000
	}
	// P(0) = tanh(1/4), and the standard deviation is 2.80: the sum has 88.6.
	if changed < 700 || changed > 810 || sum < -500 || sum > 500 {
		t.Errorf("%d counts of 1000 were changed, by %d in all", changed, sum)
	}
	if want := "# epsilon 0.5; the error of each is at most 6 with a probability of 95 %"; lines[1000] != want {
		t.Errorf("got %q", lines[1000])
	}
}

func TestNothingIsPublishedWithoutNoise(t *testing.T) {
	var out strings.Builder
	failing := dpnoise.WithRandom(strings.NewReader("0"))
	err := publish(1, strings.NewReader("red,1203\n"), &out, failing)
	if !errors.Is(err, dpnoise.ErrRandomness) || out.Len() > 0 {
		t.Errorf("got %v and %q", err, out.String())
	}
	err = publish(0, strings.NewReader("red,1203\n"), &out)
	if !errors.Is(err, dpnoise.ErrParameter) || out.Len() > 0 {
		t.Errorf("got %v and %q", err, out.String())
	}
	err = publish(1, strings.NewReader("red,1203\ngreen,98765x\n"), &out)
	if err == nil || err.Error() != "line 2 must have a label, a comma and a count" || out.Len() > 0 {
		t.Errorf("got %v and %q", err, out.String())
	}
}
