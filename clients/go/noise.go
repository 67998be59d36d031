package dpnoise

// #include <dpnoise.h>
import "C"

// A Sampler draws noise.
type Sampler struct {
	*object
	settings
}

// NewDiscreteLaplaceSampler makes a sampler of discrete Laplace noise: P(x) is proportional to exp(-|x| / scale) for
// all integers x. The scale is from 2^-40 to 2^40, and exact: it is the rational number that the float64 is.
func NewDiscreteLaplaceSampler(scale float64, options ...Option) (*Sampler, error) {
	return newSampler(func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_discrete_laplace_sampler(C.double(scale), handle)
	}, options)
}

// NewDiscreteGaussianSampler makes a sampler of discrete Gaussian noise: P(x) is proportional to exp(-x^2 / (2
// sigma^2)) for all integers x. Sigma is from 2^-20 to 2^40, and exact.
func NewDiscreteGaussianSampler(sigma float64, options ...Option) (*Sampler, error) {
	return newSampler(func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_discrete_gaussian_sampler(C.double(sigma), handle)
	}, options)
}

func newSampler(make func(handle *C.uint64_t) C.dpnoise_status, options []Option) (*Sampler, error) {
	settings, err := newSettings(options)
	if err != nil {
		return nil, err
	}
	o, err := newObject(make)
	if err != nil {
		return nil, err
	}
	return &Sampler{o, settings}, nil
}

// Fill overwrites all of out with independent samples. If it fails, out is as it was, or zero.
func (s *Sampler) Fill(out []int64) error {
	return call(func() C.dpnoise_status {
		return C.dpnoise_sampler_fill(
			s.id(), s.threads, s.generator.id(), (*C.int64_t)(pointer(out)), C.size_t(len(out)))
	}, s.object, s.generator)
}

// Laplace has the parameters of the Laplace mechanism for real values. Values are rounded to a grid first, so the
// guarantee holds for floating-point numbers, too.
type Laplace struct {
	Epsilon     float64 // what a release spends
	Sensitivity float64 // the largest L1 distance of the values of neighbouring data
	Granularity float64 // the grid, a power of two; 0 for the one that suits
}

// Mechanism makes the mechanism.
func (l Laplace) Mechanism(options ...Option) (*Mechanism[float64], error) {
	return newMechanism[float64](func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_laplace_mechanism(
			C.double(l.Epsilon), C.double(l.Sensitivity), C.double(l.Granularity), handle)
	}, options)
}

// Gaussian has the parameters of the Gaussian mechanism for real values, with the smallest noise that suffices.
// Values are rounded to a grid first, so the guarantee holds for floating-point numbers, too.
type Gaussian struct {
	Epsilon     float64 // what a release spends, together with Delta
	Delta       float64
	Sensitivity float64 // the largest L2 distance of the values of neighbouring data
	Granularity float64 // the grid, a power of two; 0 for the one that suits
}

// Mechanism makes the mechanism.
func (g Gaussian) Mechanism(options ...Option) (*Mechanism[float64], error) {
	return newMechanism[float64](func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_gaussian_mechanism(C.double(g.Epsilon), C.double(g.Delta), C.double(g.Sensitivity),
			C.double(g.Granularity), handle)
	}, options)
}

// DiscreteLaplace has the parameters of the discrete Laplace mechanism for integers.
type DiscreteLaplace struct {
	Epsilon     float64 // what a release spends
	Sensitivity uint64  // the largest L1 distance of the values of neighbouring data
}

// Mechanism makes the mechanism.
func (l DiscreteLaplace) Mechanism(options ...Option) (*Mechanism[int64], error) {
	return newMechanism[int64](func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_discrete_laplace_mechanism(C.double(l.Epsilon), C.uint64_t(l.Sensitivity), handle)
	}, options)
}

// DiscreteGaussian has the parameters of the discrete Gaussian mechanism for integers.
type DiscreteGaussian struct {
	Epsilon     float64 // what a release spends, together with Delta
	Delta       float64
	Sensitivity float64 // the largest L2 distance of the values of neighbouring data
}

// Mechanism makes the mechanism.
func (g DiscreteGaussian) Mechanism(options ...Option) (*Mechanism[int64], error) {
	return newMechanism[int64](func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_discrete_gaussian_mechanism(
			C.double(g.Epsilon), C.double(g.Delta), C.double(g.Sensitivity), handle)
	}, options)
}

// A Mechanism adds noise to values of one type. The parameters make one: [Laplace], [Gaussian], [DiscreteLaplace] and
// [DiscreteGaussian].
type Mechanism[V int64 | float64] struct {
	*object
	settings
}

func newMechanism[V int64 | float64](
	make func(handle *C.uint64_t) C.dpnoise_status, options []Option,
) (*Mechanism[V], error) {
	settings, err := newSettings(options)
	if err != nil {
		return nil, err
	}
	o, err := newObject(make)
	if err != nil {
		return nil, err
	}
	return &Mechanism[V]{o, settings}, nil
}

// Release returns the values with noise, and leaves the given ones as they are. All of them together are one release,
// whose sensitivity is that of the mechanism. Values that are not finite are refused with [ErrData]; sums of integers
// outside the range of int64 saturate.
func (m *Mechanism[V]) Release(values []V) ([]V, error) {
	released := make([]V, len(values))
	copy(released, values) // wiped by the library if it fails
	err := call(func() C.dpnoise_status { return m.release(released) }, m.object, m.generator)
	if err != nil {
		return nil, err
	}
	return released, nil
}

func (m *Mechanism[V]) release(values []V) C.dpnoise_status {
	n := C.size_t(len(values))
	if _, ok := any(values).([]float64); ok {
		return C.dpnoise_mechanism_release_numbers(
			m.id(), (*C.double)(pointer(values)), n, m.threads, m.generator.id())
	}
	return C.dpnoise_mechanism_release_integers(
		m.id(), (*C.int64_t)(pointer(values)), n, m.threads, m.generator.id())
}

// Error returns a bound on the error of one of n values that are released together: the smallest one that it exceeds
// with a probability of at most 1 - level.
func (m *Mechanism[V]) Error(level float64, n int) (float64, error) {
	bound := new(C.double)
	err := call(func() C.dpnoise_status {
		return C.dpnoise_mechanism_error(m.id(), C.double(level), C.size_t(n), bound)
	}, m.object)
	return float64(*bound), err
}
