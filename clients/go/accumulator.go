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
// command line wrote it. One that is damaged, or of another protocol, is refused with [ErrState], and one with more
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

// Merge adds the counts of another accumulator of the same protocol, which stays as it is.
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
		return nil, err
	}
	defer protocol.Close()
	var k C.uint32_t
	err = call(func() C.dpnoise_status {
		return C.dpnoise_protocol_facts(protocol.id(), nil, nil, &k, nil, nil)
	}, protocol)
	return &Accumulator{o, a.threads, int(k)}, err
}

// Estimate returns how many people have each of the k values, an unbiased estimate that may be negative, and its
// standard errors; for randomized response those of no and of yes.
//
// Protocols whose reports are not counted by value are refused with [ErrParameter]: means, which have
// [Accumulator.EstimateMean], sketches and distributions. Python estimates the latter from their state.
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
