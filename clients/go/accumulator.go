package dpnoise

// #include <dpnoise.h>
import "C"

// An Accumulator counts the reports of one protocol. Reports are private already, and so is all that is computed from
// them. Several goroutines may add to one accumulator.
type Accumulator struct {
	*object
	threads C.uint32_t
	k       int
}

// NewAccumulator makes an accumulator that has counted nothing yet.
func (p *Protocol) NewAccumulator() (*Accumulator, error) {
	o, err := newObject(func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_accumulator_new(p.id(), handle)
	}, p.object)
	if err != nil {
		return nil, err
	}
	return &Accumulator{o, p.threads, p.k}, nil
}

// ParseAccumulator reads the state of an accumulator of this protocol, as [Accumulator.MarshalBinary], Python or the
// command line wrote it. One that is damaged, or of another specification, is refused with [ErrState], and one with more
// bytes of counters than [WithLimit] allows with [ErrParameter].
func (p *Protocol) ParseAccumulator(state []byte) (*Accumulator, error) {
	o, err := newObject(func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_accumulator_from_bytes((*C.uint8_t)(pointer(state)), C.size_t(len(state)), p.limit, handle)
	})
	if err != nil {
		return nil, err
	}
	read := &Accumulator{object: o}
	defer read.Close()
	a, err := p.NewAccumulator()
	if err != nil {
		return nil, err
	}
	if err := a.Merge(read); err != nil { // refuses other protocols
		a.Close()
		return nil, err
	}
	return a, nil
}

// Add counts messages. One that is not a message of this protocol is counted as rejected. Adding a thousand at once
// takes far less time than adding each by itself.
func (a *Accumulator) Add(messages ...[]byte) error {
	bytes, offsets := join(messages)
	return call(func() C.dpnoise_status {
		return C.dpnoise_accumulator_add_messages(a.id(), (*C.uint8_t)(pointer(bytes)), (*C.int64_t)(pointer(offsets)),
			C.size_t(len(messages)), a.threads)
	}, a.object)
}

// AddReports counts bare reports that follow each other, as [Protocol.Reports] returns them. One that is malformed is
// counted as rejected.
func (a *Accumulator) AddReports(reports []byte) error {
	return call(func() C.dpnoise_status {
		return C.dpnoise_accumulator_add_reports(a.id(), (*C.uint8_t)(pointer(reports)), C.size_t(len(reports)),
			a.threads)
	}, a.object)
}

// Merge adds the counts of another accumulator of the same specification, which stays as it is.
func (a *Accumulator) Merge(other *Accumulator) error {
	return call(func() C.dpnoise_status {
		return C.dpnoise_accumulator_merge(a.id(), other.id())
	}, a.object, other.object)
}

// MarshalBinary returns the state, for [Protocol.ParseAccumulator], Python or the command line.
func (a *Accumulator) MarshalBinary() ([]byte, error) {
	return readBytes(func(out *C.uint8_t, capacity C.size_t, length *C.size_t) C.dpnoise_status {
		return C.dpnoise_accumulator_to_bytes(a.id(), out, capacity, length)
	}, a.object)
}

// Counts returns how many reports were counted, and how many were rejected.
func (a *Accumulator) Counts() (n, rejected uint64, err error) {
	var counts [2]C.uint64_t
	err = call(func() C.dpnoise_status {
		return C.dpnoise_accumulator_counts(a.id(), &counts[0], &counts[1])
	}, a.object)
	return uint64(counts[0]), uint64(counts[1]), err
}

// Attribute returns the counters of one of several attributes, by its name, for the methods that estimate. They are those
// of this moment; reports cannot be added to them, and they have no state. Of reports that are about one attribute each,
// estimates are about all people who reported, of whom those who reported on the attribute are a random sample.
func (a *Accumulator) Attribute(name string) (*Accumulator, error) {
	bytes := []byte(name)
	o, err := newObject(func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_accumulator_attribute(a.id(), (*C.uint8_t)(pointer(bytes)), C.size_t(len(bytes)), handle)
	}, a.object)
	if err != nil {
		return nil, err
	}
	protocol, err := newObject(func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_accumulator_protocol(o.id(), handle)
	}, o)
	if err != nil {
		o.Close()
		return nil, err
	}
	defer protocol.Close()
	var k C.uint32_t
	err = call(func() C.dpnoise_status {
		return C.dpnoise_protocol_facts(protocol.id(), nil, nil, &k, nil, nil)
	}, protocol)
	if err != nil {
		o.Close()
		return nil, err
	}
	return &Accumulator{o, a.threads, int(k)}, nil
}

// Estimate returns how many people have each of the k values, an unbiased estimate that may be negative, and its
// standard errors; for randomized response those of no and of yes.
//
// Protocols whose reports are not counted by value are refused with [ErrParameter]: the methods below are for them, save
// RAPPOR, which Python decodes from its state.
func (a *Accumulator) Estimate() (counts, standardErrors []float64, err error) {
	counts, standardErrors = make([]float64, a.k), make([]float64, a.k)
	err = call(func() C.dpnoise_status {
		return C.dpnoise_accumulator_estimate(
			a.id(), (*C.double)(pointer(counts)), (*C.double)(pointer(standardErrors)), C.size_t(a.k))
	}, a.object)
	if err != nil {
		return nil, nil, err
	}
	return counts, standardErrors, nil
}

// EstimateMean returns the mean of people's numbers, an unbiased estimate that may be outside of [-1, 1], and its
// standard error.
//
// Protocols that are not for means are refused with [ErrParameter], and so is an accumulator without a report.
func (a *Accumulator) EstimateMean() (mean, standardError float64, err error) {
	numbers := make([]float64, 2)
	err = call(func() C.dpnoise_status {
		return C.dpnoise_accumulator_estimate_mean(
			a.id(), (*C.double)(pointer(numbers[:1])), (*C.double)(pointer(numbers[1:])))
	}, a.object)
	return numbers[0], numbers[1], err
}

// EstimateDensity returns how people's numbers in [0, 1] are distributed: the shares of the k bins, which are evenly
// spaced. With smoothing neighbouring bins are smoothed, as the authors recommend; without it the estimate keeps peaks of
// single bins, and fits noise as well.
//
// Protocols other than the square wave are refused with [ErrParameter], and so is an accumulator without a report.
func (a *Accumulator) EstimateDensity(smoothing bool) ([]float64, error) {
	shares, smooth := make([]float64, a.k), C.uint32_t(0)
	if smoothing {
		smooth = 1
	}
	err := call(func() C.dpnoise_status {
		return C.dpnoise_accumulator_estimate_density(a.id(), smooth, (*C.double)(pointer(shares)), C.size_t(a.k))
	}, a.object)
	if err != nil {
		return nil, err
	}
	return shares, nil
}

// A Range is that of the values from First to Last, both included.
type Range struct{ First, Last int64 }

// EstimateRanges returns how many people have a value in each of these ranges, an unbiased estimate that may be negative,
// and upper bounds on the standard errors. The range of a value v alone is {v, v}.
//
// Protocols that are not for ranges are refused with [ErrParameter].
func (a *Accumulator) EstimateRanges(ranges []Range) (counts, standardErrors []float64, err error) {
	first, last := make([]int64, len(ranges)), make([]int64, len(ranges))
	for i, r := range ranges {
		first[i], last[i] = r.First, r.Last
	}
	counts, standardErrors = make([]float64, len(ranges)), make([]float64, len(ranges))
	err = call(func() C.dpnoise_status {
		return C.dpnoise_accumulator_estimate_ranges(
			a.id(), (*C.int64_t)(pointer(first)), (*C.int64_t)(pointer(last)), C.size_t(len(ranges)),
			(*C.double)(pointer(counts)), (*C.double)(pointer(standardErrors)))
	}, a.object)
	if err != nil {
		return nil, nil, err
	}
	return counts, standardErrors, nil
}

// EstimateQuantiles returns, for each share in q, the smallest value that this share of all people do not exceed: an
// estimate; 0.5 is for the median.
//
// Protocols that are not for ranges are refused with [ErrParameter].
func (a *Accumulator) EstimateQuantiles(q []float64) ([]int64, error) {
	values := make([]int64, len(q))
	err := call(func() C.dpnoise_status {
		return C.dpnoise_accumulator_estimate_quantiles(
			a.id(), (*C.double)(pointer(q)), C.size_t(len(q)), (*C.int64_t)(pointer(values)))
	}, a.object)
	if err != nil {
		return nil, err
	}
	return values, nil
}

// EstimateCandidates returns how many people have each of these texts, an unbiased estimate that may be negative, and its
// standard errors.
//
// Protocols that are not sketches are refused with [ErrParameter].
func (a *Accumulator) EstimateCandidates(texts []string) (counts, standardErrors []float64, err error) {
	bytes, offsets := join(texts)
	counts, standardErrors = make([]float64, len(texts)), make([]float64, len(texts))
	err = call(func() C.dpnoise_status {
		return C.dpnoise_accumulator_estimate_candidates(
			a.id(), (*C.uint8_t)(pointer(bytes)), (*C.int64_t)(pointer(offsets)), C.size_t(len(texts)),
			(*C.double)(pointer(counts)), (*C.double)(pointer(standardErrors)))
	}, a.object)
	if err != nil {
		return nil, nil, err
	}
	return counts, standardErrors, nil
}

// HeavyHitters are frequent values, the most frequent first, with estimates of how many people have each.
type HeavyHitters struct {
	Values         []int64
	Counts         []float64
	StandardErrors []float64
	// Complete says whether all significant prefixes were extended. If not, there were more of them than can be tried.
	Complete bool
}

// EstimatePrefixes finds frequent values, at this confidence level: the result contains any value that nobody has with a
// probability of about 1 - level.
//
// Protocols other than prefix extension are refused with [ErrParameter].
func (a *Accumulator) EstimatePrefixes(level float64) (HeavyHitters, error) {
	for capacity := 256; ; {
		values := make([]int64, capacity)
		counts, standardErrors := make([]float64, capacity), make([]float64, capacity)
		found, complete := make([]C.size_t, 1), make([]C.uint32_t, 1)
		err := call(func() C.dpnoise_status {
			return C.dpnoise_accumulator_estimate_prefixes(
				a.id(), C.double(level), (*C.int64_t)(pointer(values)), (*C.double)(pointer(counts)),
				(*C.double)(pointer(standardErrors)), C.size_t(capacity), &found[0], &complete[0])
		}, a.object)
		if err != nil {
			return HeavyHitters{}, err
		}
		if n := int(found[0]); n <= capacity {
			return HeavyHitters{values[:n], counts[:n], standardErrors[:n], complete[0] == 1}, nil
		}
		capacity = int(found[0])
	}
}
