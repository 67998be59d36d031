package dpnoise

import (
	"errors"
	"math"
	"testing"
)

// released checks a mechanism: that it adds noise to all values, and leaves those that were given.
func released[V int64 | float64](t *testing.T, mechanism *Mechanism[V], err error, standardDeviation float64) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer mechanism.Close()
	values := make([]V, 100_000)
	for i := range values {
		values[i] = 1000
	}
	out := must(mechanism.Release(values))
	squares := 0.0
	for i, value := range values {
		if value != 1000 {
			t.Fatal("the values were changed")
		}
		squares += math.Pow(float64(out[i])-1000, 2)
	}
	if found := math.Sqrt(squares / float64(len(out))); math.Abs(found/standardDeviation-1) > 0.02 {
		t.Errorf("%T: the standard deviation is %v, expected %v", mechanism, found, standardDeviation)
	}
	one, err := mechanism.Error(0.95, 1)
	if err != nil || one < standardDeviation || one > 3*standardDeviation {
		t.Errorf("the error is %v, %v", one, err)
	}
	if more := must(mechanism.Error(0.99, 1)); more <= one {
		t.Errorf("the error at 0.99 is %v, at 0.95 %v", more, one)
	}
	_, err = mechanism.Error(1.5, 1)
	fails(t, err, ErrParameter, "level")
	if none, err := mechanism.Release(nil); err != nil || len(none) != 0 {
		t.Errorf("got %v, %v", none, err)
	}
}

func TestMechanismsAddTheirNoise(t *testing.T) {
	laplace, err := Laplace{Epsilon: 0.1, Sensitivity: 1}.Mechanism(fixed(1))
	released(t, laplace, err, 10*math.Sqrt2)
	gaussian, err := Gaussian{Epsilon: 0.5, Delta: 1e-6, Sensitivity: 2}.Mechanism(fixed(1))
	released(t, gaussian, err, 2*8.0567)
	discreteLaplace, err := DiscreteLaplace{Epsilon: 0.1, Sensitivity: 1}.Mechanism(fixed(1))
	released(t, discreteLaplace, err, 10*math.Sqrt2)
	discreteGaussian, err := DiscreteGaussian{Epsilon: 0.5, Delta: 1e-6, Sensitivity: 2}.Mechanism(fixed(1))
	released(t, discreteGaussian, err, 2*8.0567)
}

func TestAGridIsKept(t *testing.T) {
	coarse := must(Laplace{Epsilon: 1, Sensitivity: 1, Granularity: 0.25}.Mechanism())
	for _, x := range must(coarse.Release(make([]float64, 1000))) {
		if x != math.Round(4*x)/4 {
			t.Fatalf("%v is not on the grid", x)
		}
	}
}

func TestSumsSaturate(t *testing.T) {
	values := make([]int64, 1000)
	for i := range values {
		values[i] = math.MaxInt64
	}
	for _, x := range must(must(DiscreteLaplace{Epsilon: 0.001, Sensitivity: 1}.Mechanism()).Release(values)) {
		if x < math.MaxInt64-1_000_000 {
			t.Fatalf("a sum is %v", x)
		}
	}
}

func TestNoiseIsRefused(t *testing.T) {
	_, err := Laplace{Epsilon: 1, Sensitivity: 1, Granularity: 0.3}.Mechanism()
	fails(t, err, ErrParameter, "granularity")
	_, err = DiscreteLaplace{Epsilon: 1}.Mechanism()
	fails(t, err, ErrParameter, "sensitivity")
}

func TestThreadsAreAtLeastOne(t *testing.T) {
	for _, n := range []int{0, -1, math.MaxInt32 + 1} {
		_, err := NewDiscreteLaplaceSampler(1, WithThreads(n))
		fails(t, err, ErrParameter, "threads must be from 1 to 2147483647")
	}
	sampler := must(NewDiscreteLaplaceSampler(1000, WithThreads(3)))
	out := make([]int64, 1_000_000)
	if err := sampler.Fill(out); err != nil {
		t.Fatal(err)
	}
	zeros := 0
	for _, x := range out[len(out)-1000:] {
		if x == 0 {
			zeros++
		}
	}
	if zeros > 100 {
		t.Errorf("%d of the last 1000 samples are 0", zeros)
	}
}

func TestAStatusIsAnError(t *testing.T) {
	_, err := NewDiscreteLaplaceSampler(-1)
	var failed *Error
	if !errors.As(err, &failed) || failed.Status != ErrParameter || failed.Message == "" {
		t.Errorf("got %#v", err)
	}
	if errors.Is(err, ErrData) || ErrData.Error() != "data" || Status(99).Error() != "status 99" {
		t.Errorf("got %v", err)
	}
}
