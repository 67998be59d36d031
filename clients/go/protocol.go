package dpnoise

// #include <dpnoise.h>
import "C"

import (
	"encoding/hex"
	"fmt"
)

// Kind is what the values of a protocol are.
type Kind int

// The kinds of values.
const (
	// Integers from 0 to k - 1, or below 2^bits for prefixes; 0 for no and 1 for yes in randomized response.
	Integers Kind = C.DPNOISE_INTEGERS
	// Numbers in [-1, 1] or within the bounds of the document for means and in [0, 1] for distributions.
	Numbers Kind = C.DPNOISE_NUMBERS
	// Texts in UTF-8.
	Texts Kind = C.DPNOISE_TEXTS
	// Attributes, several of them, each with values of its own. Their reports are counted here, and not made.
	Attributes Kind = C.DPNOISE_ATTRIBUTES
)

// String is the name of the kind.
func (k Kind) String() string {
	switch k {
	case Integers:
		return "integers"
	case Numbers:
		return "numbers"
	case Texts:
		return "texts"
	case Attributes:
		return "attributes"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// A Protocol makes reports. It is worth keeping for many of them.
//
// Values are private. A value that the protocol does not take is refused with [ErrData], and one of another kind than
// [Protocol.Takes] says with [ErrParameter].
type Protocol struct {
	*object
	settings
	takes         Kind
	keepsMemo     bool
	k             int
	reportBytes   int
	counterBytes  int
	epsilon       float64
	delta         float64
	header        [HeaderBytes]byte
	bareDigest    [C.DPNOISE_DIGEST_BYTES]byte
	specification string
}

// ParseProtocol reads a specification: the bytes as they came, never written again by a program; or a document with a
// specification and its labels. One that is damaged, contradicts itself, or has other labels than the document or other
// probabilities than its epsilon gives is refused with [ErrState].
//
// Whoever announces a specification chooses its epsilon and delta. Compare [Protocol.Epsilon] and [Protocol.Delta] with
// what the application promises to people, or know the specification in advance.
//
// A short specification may ask for much memory. One whose counters have more bytes than [WithLimit] allows is refused
// with [ErrParameter].
func ParseProtocol(specification []byte, options ...Option) (*Protocol, error) {
	settings, err := newSettings(options)
	if err != nil {
		return nil, err
	}
	o, err := newObject(func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_protocol_from_json(
			(*C.uint8_t)(pointer(specification)), C.size_t(len(specification)), settings.limit, handle)
	})
	return newProtocol(o, settings, err)
}

func newProtocol(o *object, settings settings, err error) (*Protocol, error) {
	if err != nil {
		return nil, err
	}
	p := &Protocol{object: o, settings: settings}
	if err := p.readFacts(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Protocol) readFacts() error {
	var facts struct {
		takes, keepsMemo, k C.uint32_t
		reportBytes         C.size_t
		counterBytes        C.size_t
		epsilon, delta      C.double
		header              [HeaderBytes]C.uint8_t
		bareDigest          [C.DPNOISE_DIGEST_BYTES]C.uint8_t
	}
	err := call(func() C.dpnoise_status {
		status := C.dpnoise_protocol_facts(
			p.id(), &facts.takes, &facts.keepsMemo, &facts.k, &facts.reportBytes, &facts.counterBytes)
		if status == C.DPNOISE_STATUS_OK {
			status = C.dpnoise_protocol_epsilon(p.id(), &facts.epsilon)
		}
		if status == C.DPNOISE_STATUS_OK {
			status = C.dpnoise_protocol_delta(p.id(), &facts.delta)
		}
		if status == C.DPNOISE_STATUS_OK {
			status = C.dpnoise_protocol_header(p.id(), &facts.header[0], HeaderBytes)
		}
		if status == C.DPNOISE_STATUS_OK {
			status = C.dpnoise_protocol_bare_digest(p.id(), &facts.bareDigest[0], C.DPNOISE_DIGEST_BYTES)
		}
		return status
	}, p.object)
	if err != nil {
		return err
	}
	p.takes, p.keepsMemo, p.k = Kind(facts.takes), facts.keepsMemo != 0, int(facts.k)
	p.reportBytes, p.counterBytes = int(facts.reportBytes), int(facts.counterBytes)
	p.epsilon, p.delta = float64(facts.epsilon), float64(facts.delta)
	for i, b := range facts.header {
		p.header[i] = byte(b)
	}
	for i, b := range facts.bareDigest {
		p.bareDigest[i] = byte(b)
	}
	specification, err := readBytes(func(out *C.uint8_t, capacity C.size_t, length *C.size_t) C.dpnoise_status {
		return C.dpnoise_protocol_to_json(p.id(), out, capacity, length)
	}, p.object)
	p.specification = string(specification)
	return err
}

// About is the same randomiser for another collection, with this question and this period: a protocol of its own, which
// is closed by itself. An empty text leaves that of this protocol. A device that has its specification built in writes
// the period from its own clock. Give texts in Unicode's normal form NFC, which is not checked. A memo that this
// protocol has is not used.
//
// A question of more than 255 bytes, a period of more than 63, and one with a space at either end or characters that
// are not seen, are refused with [ErrParameter].
func (p *Protocol) About(question, period string) (*Protocol, error) {
	asked, told := []byte(question), []byte(period)
	o, err := newObject(func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_protocol_about(p.id(), (*C.uint8_t)(pointer(asked)), C.size_t(len(asked)),
			(*C.uint8_t)(pointer(told)), C.size_t(len(told)), handle)
	}, p.object)
	return newProtocol(o, p.settings, err)
}

// WithMemo is the protocol of one question to people who keep a memo, for protocols in which they do: a protocol of
// its own, which is closed by itself. The same words must be given each time the question is asked, in UTF-8, and
// other words for another question; if the specification names a question, these words. Two spellings of a text are two
// questions: give Unicode's normal form NFC (golang.org/x/text/unicode/norm), which is not checked. This protocol and
// the memo may be closed before it.
//
// The memo keeps in mind that its people answer the question with this randomiser, and refuses another one, which would
// spend epsilon again, with [ErrState]. So store [Memo.Bytes] after this call and before a report is sent.
func (p *Protocol) WithMemo(memo *Memo, question string) (*Protocol, error) {
	words := []byte(question)
	o, err := newObject(func(handle *C.uint64_t) C.dpnoise_status {
		return C.dpnoise_protocol_with_memo(
			p.id(), memo.id(), (*C.uint8_t)(pointer(words)), C.size_t(len(words)), handle)
	}, p.object, memo.object)
	if err != nil {
		return nil, err
	}
	asked := *p
	asked.object = o
	return &asked, nil
}

// Takes is what the values are.
func (p *Protocol) Takes() Kind { return p.takes }

// KeepsMemo says whether people keep a memo. Then [Protocol.WithMemo] is needed before there are reports.
func (p *Protocol) KeepsMemo() bool { return p.keepsMemo }

// K is the number of values; for sketches that of columns, for RAPPOR that of bits.
func (p *Protocol) K() int { return p.k }

// ReportBytes is the number of bytes of a report. A message has [HeaderBytes] more.
func (p *Protocol) ReportBytes() int { return p.reportBytes }

// CounterBytes is the number of bytes of the counters of an [Accumulator].
func (p *Protocol) CounterBytes() int { return p.counterBytes }

// Epsilon is what a report spends, rounded up; where people keep a memo, what all reports on one value spend together.
func (p *Protocol) Epsilon() float64 { return p.epsilon }

// Delta is what a report spends beside epsilon: 0 for most protocols.
func (p *Protocol) Delta() float64 { return p.delta }

// Specification is the specification, for [ParseProtocol].
func (p *Protocol) Specification() string { return p.specification }

// BareDigest is the SHA-256 of the specification without labels, question and period: of how reports are made. Whoever
// answers a question with another randomiser spends epsilon again.
func (p *Protocol) BareDigest() [32]byte { return p.bareDigest }

// Header is the bytes of a message before its report.
func (p *Protocol) Header() []byte { return append([]byte(nil), p.header[:]...) }

// ID is the id of the specification: the first 16 hexadecimal digits of the SHA-256 of its bytes.
func (p *Protocol) ID() string { return hex.EncodeToString(p.header[HeaderBytes-8:]) }

// Message randomises the integer of one person, and returns the message to be sent.
func (p *Protocol) Message(value int64) ([]byte, error) {
	values := []int64{value}
	defer wipe(values)
	return p.integers(C.DPNOISE_MESSAGES, values)
}

// MessageOfNumber randomises the number of one person, and returns the message to be sent.
func (p *Protocol) MessageOfNumber(value float64) ([]byte, error) {
	values := []float64{value}
	defer wipe(values)
	return p.numbers(C.DPNOISE_MESSAGES, values)
}

// MessageOfText randomises the text of one person, and returns the message to be sent. Time depends on the length of
// the text, in steps of 64 bytes.
func (p *Protocol) MessageOfText(text string) ([]byte, error) {
	return p.texts(C.DPNOISE_MESSAGES, []string{text})
}

// Messages randomises the integers of many people: a message for each.
func (p *Protocol) Messages(values []int64) ([][]byte, error) {
	return p.split(p.integers(C.DPNOISE_MESSAGES, values))
}

// MessagesOfNumbers randomises the numbers of many people: a message for each.
func (p *Protocol) MessagesOfNumbers(values []float64) ([][]byte, error) {
	return p.split(p.numbers(C.DPNOISE_MESSAGES, values))
}

// MessagesOfTexts randomises the texts of many people: a message for each. Time depends on the lengths of the texts, in
// steps of 64 bytes.
func (p *Protocol) MessagesOfTexts(texts []string) ([][]byte, error) {
	return p.split(p.texts(C.DPNOISE_MESSAGES, texts))
}

// Reports randomises the integers of many people. Bare reports follow each other, of [Protocol.ReportBytes] each, as
// [Accumulator.AddReports] takes them: whoever stores them must know which protocol they are of.
func (p *Protocol) Reports(values []int64) ([]byte, error) {
	return p.integers(C.DPNOISE_REPORTS, values)
}

// ReportsOfNumbers randomises the numbers of many people, as [Protocol.Reports] does.
func (p *Protocol) ReportsOfNumbers(values []float64) ([]byte, error) {
	return p.numbers(C.DPNOISE_REPORTS, values)
}

// ReportsOfTexts randomises the texts of many people, as [Protocol.Reports] and [Protocol.MessagesOfTexts] do.
func (p *Protocol) ReportsOfTexts(texts []string) ([]byte, error) {
	return p.texts(C.DPNOISE_REPORTS, texts)
}

func (p *Protocol) integers(form C.uint32_t, values []int64) ([]byte, error) {
	return p.perturb(form, len(values), func(out *C.uint8_t, length C.size_t) C.dpnoise_status {
		return C.dpnoise_perturb_integers(p.id(), (*C.int64_t)(pointer(values)), C.size_t(len(values)),
			form, p.threads, p.generator.id(), out, length)
	})
}

func (p *Protocol) numbers(form C.uint32_t, values []float64) ([]byte, error) {
	return p.perturb(form, len(values), func(out *C.uint8_t, length C.size_t) C.dpnoise_status {
		return C.dpnoise_perturb_numbers(p.id(), (*C.double)(pointer(values)), C.size_t(len(values)),
			form, p.threads, p.generator.id(), out, length)
	})
}

func (p *Protocol) texts(form C.uint32_t, texts []string) ([]byte, error) {
	bytes, offsets := join(texts)
	defer wipe(bytes)
	defer wipe(offsets)
	return p.perturb(form, len(texts), func(out *C.uint8_t, length C.size_t) C.dpnoise_status {
		return C.dpnoise_perturb_texts(p.id(), (*C.uint8_t)(pointer(bytes)), (*C.int64_t)(pointer(offsets)),
			C.size_t(len(texts)), form, p.threads, p.generator.id(), out, length)
	})
}

// perturb makes n rows with a function that writes them.
func (p *Protocol) perturb(
	form C.uint32_t, n int, write func(out *C.uint8_t, length C.size_t) C.dpnoise_status,
) ([]byte, error) {
	width := p.reportBytes
	if form == C.DPNOISE_MESSAGES {
		width += HeaderBytes
	}
	out := make([]byte, n*width)
	err := call(func() C.dpnoise_status {
		return write((*C.uint8_t)(pointer(out)), C.size_t(len(out)))
	}, p.object, p.generator)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// split makes a slice of each message.
func (p *Protocol) split(messages []byte, err error) ([][]byte, error) {
	if err != nil {
		return nil, err
	}
	width := HeaderBytes + p.reportBytes
	rows := make([][]byte, 0, len(messages)/width)
	for ; len(messages) > 0; messages = messages[width:] {
		rows = append(rows, messages[:width:width])
	}
	return rows, nil
}

// join puts rows after each other; row i is from offset i to the next one.
func join[T string | []byte](rows []T) (bytes []byte, offsets []int64) {
	total := 0
	for _, row := range rows {
		total += len(row)
	}
	bytes, offsets = make([]byte, 0, total), make([]int64, 1, len(rows)+1)
	for _, row := range rows {
		bytes = append(bytes, row...)
		offsets = append(offsets, int64(len(bytes)))
	}
	return bytes, offsets
}
