// The runner of the Go client: it answers the commands of clients/shared, one on each line.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	dpnoise "github.com/dpnoise/dpnoise/clients/go"
)

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		fmt.Fprintln(out, answer(strings.TrimSuffix(line, "\n")))
		out.Flush()
	}
}

var commands = map[string]func(*fields) (string, error){
	"perturb":    perturb,
	"collect":    collect,
	"estimate":   estimate,
	"mean":       estimateMean,
	"density":    estimateDensity,
	"ranges":     estimateRanges,
	"candidates": estimateCandidates,
	"prefixes":   estimatePrefixes,
	"about":      about,
	"merge":      merge,
	"memo":       memo,
	"newmemo":    newMemo,
	"facts":      facts,
	"fill":       fill,
	"release":    release,
	"freed":      freed,
	"time":       timeMessages,
	"filltime":   timeFill,
}

func answer(line string) string {
	words := &fields{rest: strings.Split(line, " ")}
	name := words.text()
	command, ok := commands[name]
	if !ok {
		return "error internal no command " + name
	}
	result, err := command(words)
	if err == nil {
		err = words.err
	}
	if err == nil {
		return strings.TrimSuffix("ok "+result, " ")
	}
	status := "internal"
	if failed := (*dpnoise.Error)(nil); errors.As(err, &failed) {
		status = failed.Status.Error()
	}
	return "error " + status + " " + strings.ReplaceAll(err.Error(), "\n", " ")
}

// fields are the words of a command that are not read yet, and the first error of reading them.
type fields struct {
	rest []string
	err  error
}

func (f *fields) text() string {
	if len(f.rest) == 0 {
		f.fail(errors.New("too few fields"))
		return ""
	}
	word := f.rest[0]
	f.rest = f.rest[1:]
	return word
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *fields) bytes() []byte {
	word := f.text()
	if word == "-" {
		return nil
	}
	decoded, err := hex.DecodeString(word)
	if err != nil {
		f.fail(errors.New("a field is not hexadecimal"))
	}
	return decoded
}

func (f *fields) integer() int64 {
	number, err := strconv.ParseInt(f.text(), 10, 64)
	if err != nil {
		f.fail(errors.New("a field is not an integer"))
	}
	return number
}

func (f *fields) double() float64 {
	decoded := f.bytes()
	if len(decoded) != 8 {
		f.fail(errors.New("a field is not a double"))
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(decoded))
}

// random is the option of scripted bytes, or none for the system's generator.
func (f *fields) random() []dpnoise.Option {
	script := f.bytes()
	if script == nil {
		return nil
	}
	return []dpnoise.Option{dpnoise.WithRandom(bytes.NewReader(script))}
}

// all reads the remaining fields.
func all[T any](f *fields, read func() T) []T {
	items := make([]T, 0, len(f.rest))
	for len(f.rest) > 0 {
		items = append(items, read())
	}
	return items
}

func doubles(numbers []float64) string {
	var text strings.Builder
	for i, number := range numbers {
		if i > 0 {
			text.WriteByte(' ')
		}
		var encoded [8]byte
		binary.LittleEndian.PutUint64(encoded[:], math.Float64bits(number))
		text.WriteString(hex.EncodeToString(encoded[:]))
	}
	return text.String()
}

func integers(numbers []int64) string {
	return strings.Trim(fmt.Sprint(numbers), "[]")
}

func perturb(f *fields) (string, error) {
	form, kind, specification, random := f.text(), f.text(), f.bytes(), f.random()
	secret, question := f.bytes(), string(f.bytes())
	protocol, err := dpnoise.ParseProtocol(specification, random...)
	if err != nil {
		return "", err
	}
	defer protocol.Close()
	if secret != nil {
		kept, err := dpnoise.ParseMemo(secret)
		if err != nil {
			return "", err
		}
		defer kept.Close()
		if protocol, err = protocol.WithMemo(kept, question); err != nil {
			return "", err
		}
		defer protocol.Close()
	}
	var reports []byte
	var messages [][]byte
	switch form + " " + kind {
	case "reports integers":
		reports, err = protocol.Reports(all(f, f.integer))
	case "reports numbers":
		reports, err = protocol.ReportsOfNumbers(all(f, f.double))
	case "reports texts":
		reports, err = protocol.ReportsOfTexts(all(f, func() string { return string(f.bytes()) }))
	case "messages integers":
		messages, err = protocol.Messages(all(f, f.integer))
	case "messages numbers":
		messages, err = protocol.MessagesOfNumbers(all(f, f.double))
	case "messages texts":
		messages, err = protocol.MessagesOfTexts(all(f, func() string { return string(f.bytes()) }))
	default:
		err = fmt.Errorf("no form or kind %s %s", form, kind)
	}
	return hex.EncodeToString(append(reports, bytes.Join(messages, nil)...)), err
}

func collected(f *fields) (*dpnoise.Accumulator, error) {
	specification, name, several := strings.Cut(f.text(), "@")
	f.rest = append([]string{specification}, f.rest...)
	accumulator, err := counted(f, f.bytes())
	if err != nil || !several {
		return accumulator, err
	}
	defer accumulator.Close()
	attribute, err := hex.DecodeString(name)
	if err != nil {
		return nil, err
	}
	return accumulator.Attribute(string(attribute))
}

// counted is an accumulator of the messages that are the remaining fields.
func counted(f *fields, specification []byte) (*dpnoise.Accumulator, error) {
	protocol, err := dpnoise.ParseProtocol(specification)
	if err != nil {
		return nil, err
	}
	defer protocol.Close()
	accumulator, err := protocol.NewAccumulator()
	if err != nil {
		return nil, err
	}
	return accumulator, accumulator.Add(all(f, f.bytes)...)
}

func collect(f *fields) (string, error) {
	accumulator, err := collected(f)
	if err != nil {
		return "", err
	}
	defer accumulator.Close()
	state, err := accumulator.MarshalBinary()
	return hex.EncodeToString(state), err
}

func about(f *fields) (string, error) {
	protocol, err := dpnoise.ParseProtocol(f.bytes())
	if err != nil {
		return "", err
	}
	defer protocol.Close()
	other, err := protocol.About(string(f.bytes()), string(f.bytes()))
	if err != nil {
		return "", err
	}
	defer other.Close()
	return fmt.Sprintf("%x %x", other.Specification(), other.BareDigest()), nil
}

func merge(f *fields) (string, error) {
	specification, other := f.bytes(), f.bytes()
	accumulator, err := counted(f, specification)
	if err != nil {
		return "", err
	}
	defer accumulator.Close()
	added := accumulator
	if other != nil {
		if added, err = counted(f, other); err != nil {
			return "", err
		}
		defer added.Close()
	}
	if err := accumulator.Merge(added); err != nil {
		return "", err
	}
	state, err := accumulator.MarshalBinary()
	return hex.EncodeToString(state), err
}

func estimate(f *fields) (string, error) {
	accumulator, err := collected(f)
	if err != nil {
		return "", err
	}
	defer accumulator.Close()
	counts, standardErrors, err := accumulator.Estimate()
	return strings.ReplaceAll(doubles(append(counts, standardErrors...)), " ", ""), err
}

func estimateMean(f *fields) (string, error) {
	accumulator, err := collected(f)
	if err != nil {
		return "", err
	}
	defer accumulator.Close()
	mean, standardError, err := accumulator.EstimateMean()
	return strings.ReplaceAll(doubles([]float64{mean, standardError}), " ", ""), err
}

func estimateDensity(f *fields) (string, error) {
	specification, smoothing := f.bytes(), f.text() == "1"
	accumulator, err := counted(f, specification)
	if err != nil {
		return "", err
	}
	defer accumulator.Close()
	shares, err := accumulator.EstimateDensity(smoothing)
	return strings.ReplaceAll(doubles(shares), " ", ""), err
}

func estimateRanges(f *fields) (string, error) {
	specification := f.bytes()
	asked, q := dpnoise.Range{First: f.integer(), Last: f.integer()}, f.double()
	accumulator, err := counted(f, specification)
	if err != nil {
		return "", err
	}
	defer accumulator.Close()
	counts, standardErrors, err := accumulator.EstimateRanges([]dpnoise.Range{asked})
	if err != nil {
		return "", err
	}
	quantiles, err := accumulator.EstimateQuantiles([]float64{q})
	return doubles(counts) + doubles(standardErrors) + " " + integers(quantiles), err
}

func estimateCandidates(f *fields) (string, error) {
	specification, texts := f.bytes(), make([]string, f.integer())
	for i := range texts {
		texts[i] = string(f.bytes())
	}
	accumulator, err := counted(f, specification)
	if err != nil {
		return "", err
	}
	defer accumulator.Close()
	counts, standardErrors, err := accumulator.EstimateCandidates(texts)
	return strings.ReplaceAll(doubles(append(counts, standardErrors...)), " ", ""), err
}

func estimatePrefixes(f *fields) (string, error) {
	specification, level := f.bytes(), f.double()
	accumulator, err := counted(f, specification)
	if err != nil {
		return "", err
	}
	defer accumulator.Close()
	found, err := accumulator.EstimatePrefixes(level)
	complete := 0
	if found.Complete {
		complete = 1
	}
	if len(found.Values) == 0 {
		return fmt.Sprintf("%d -", complete), err
	}
	numbers := strings.ReplaceAll(doubles(append(found.Counts, found.StandardErrors...)), " ", "")
	return fmt.Sprintf("%d %s %s", complete, numbers, integers(found.Values)), err
}

func memo(f *fields) (string, error) {
	kept, err := dpnoise.ParseMemo(f.bytes())
	if err != nil {
		return "", err
	}
	defer kept.Close()
	for len(f.rest) > 0 {
		protocol, err := dpnoise.ParseProtocol(f.bytes())
		if err != nil {
			return "", err
		}
		defer protocol.Close()
		asked, err := protocol.WithMemo(kept, string(f.bytes()))
		if err != nil {
			return "", err
		}
		defer asked.Close()
	}
	secret, err := kept.Bytes()
	return hex.EncodeToString(secret), err
}

func newMemo(*fields) (string, error) {
	var secrets [2][]byte
	for i := range secrets {
		made, err := dpnoise.NewMemo(1)
		if err != nil {
			return "", err
		}
		defer made.Close()
		if secrets[i], err = made.Bytes(); err != nil {
			return "", err
		}
		read, err := memo(&fields{rest: []string{hex.EncodeToString(secrets[i])}})
		if err != nil || read != hex.EncodeToString(secrets[i]) {
			return "", errors.New("a memo that is read again has other bytes")
		}
	}
	if bytes.Equal(secrets[0], secrets[1]) {
		return "same", nil
	}
	return "different", nil
}

func facts(f *fields) (string, error) {
	specification := f.bytes()
	limit, err := strconv.Atoi(f.text())
	if err != nil {
		return "", err
	}
	protocol, err := dpnoise.ParseProtocol(specification, dpnoise.WithLimit(limit))
	if err != nil {
		return "", err
	}
	defer protocol.Close()
	keeps := 0
	if protocol.KeepsMemo() {
		keeps = 1
	}
	return fmt.Sprintf("%v %d %d %d %d %s %x", protocol.Takes(), keeps, protocol.K(), protocol.ReportBytes(),
		protocol.CounterBytes(), doubles([]float64{protocol.Epsilon(), protocol.Delta()}), protocol.Header()), nil
}

func sampler(kind string, scale float64, options ...dpnoise.Option) (*dpnoise.Sampler, error) {
	if kind == "gaussian" {
		return dpnoise.NewDiscreteGaussianSampler(scale, options...)
	}
	return dpnoise.NewDiscreteLaplaceSampler(scale, options...)
}

func fill(f *fields) (string, error) {
	made, err := sampler(f.text(), f.double(), f.random()...)
	if err != nil {
		return "", err
	}
	defer made.Close()
	out := make([]int64, f.integer())
	err = made.Fill(out)
	return integers(out), err
}

func release(f *fields) (string, error) {
	kind, epsilon, delta := f.text(), f.double(), 0.0
	if strings.Contains(kind, "gaussian") {
		delta = f.double()
	}
	switch kind {
	case "laplace":
		parameters := dpnoise.Laplace{Epsilon: epsilon, Sensitivity: f.double()}
		return released(f, parameters.Mechanism, f.double, doubles)
	case "gaussian":
		parameters := dpnoise.Gaussian{Epsilon: epsilon, Delta: delta, Sensitivity: f.double()}
		return released(f, parameters.Mechanism, f.double, doubles)
	case "discrete-laplace":
		parameters := dpnoise.DiscreteLaplace{Epsilon: epsilon, Sensitivity: uint64(f.integer())}
		return released(f, parameters.Mechanism, f.integer, integers)
	case "discrete-gaussian":
		parameters := dpnoise.DiscreteGaussian{Epsilon: epsilon, Delta: delta, Sensitivity: f.double()}
		return released(f, parameters.Mechanism, f.integer, integers)
	}
	return "", fmt.Errorf("no mechanism %s", kind)
}

func released[V int64 | float64](
	f *fields, make func(...dpnoise.Option) (*dpnoise.Mechanism[V], error), read func() V, write func([]V) string,
) (string, error) {
	mechanism, err := make(f.random()...)
	if err != nil {
		return "", err
	}
	defer mechanism.Close()
	out, err := mechanism.Release(all(f, read))
	return write(out), err
}

const coins = `{"epsilon":1.0986122886681098,"k":2,"p":3,"planes":2,"protocol":"randomized_response","q":1,"version":1}`

// freed uses an object that is closed.
func freed(f *fields) (string, error) {
	protocol, err := dpnoise.ParseProtocol([]byte(coins))
	if err != nil {
		return "", err
	}
	switch what := f.text(); what {
	case "protocol":
		return closed(protocol, nil, func() error { _, err := protocol.Message(1); return err })
	case "memo":
		made, err := dpnoise.NewMemo(1)
		return closed(made, err, func() error { _, err := made.Bytes(); return err })
	case "accumulator":
		made, err := protocol.NewAccumulator()
		return closed(made, err, func() error { return made.AddReports([]byte{1}) })
	case "sampler":
		made, err := dpnoise.NewDiscreteLaplaceSampler(1)
		return closed(made, err, func() error { return made.Fill(make([]int64, 1)) })
	case "mechanism":
		made, err := dpnoise.Laplace{Epsilon: 1, Sensitivity: 1}.Mechanism()
		return closed(made, err, func() error { _, err := made.Release([]float64{1}); return err })
	default:
		return "", fmt.Errorf("no object %s", what)
	}
}

func closed(object io.Closer, err error, use func() error) (string, error) {
	if err != nil {
		return "", err
	}
	if err := object.Close(); err != nil {
		return "", fmt.Errorf("the first Close failed: %v", err)
	}
	if err := object.Close(); !errors.Is(err, dpnoise.ErrHandle) {
		return "", fmt.Errorf("the second Close gave %v", err)
	}
	return "used", use()
}

func timeMessages(f *fields) (string, error) {
	n := f.integer()
	protocol, err := dpnoise.ParseProtocol(f.bytes())
	if err != nil {
		return "", err
	}
	defer protocol.Close()
	if protocol.KeepsMemo() {
		kept, err := dpnoise.NewMemo(1)
		if err != nil {
			return "", err
		}
		if protocol, err = protocol.WithMemo(kept, "question"); err != nil {
			return "", err
		}
	}
	message := func() ([]byte, error) { return protocol.Message(0) }
	switch protocol.Takes() {
	case dpnoise.Numbers:
		message = func() ([]byte, error) { return protocol.MessageOfNumber(0) }
	case dpnoise.Texts:
		message = func() ([]byte, error) { return protocol.MessageOfText("a") }
	}
	start := time.Now()
	for i := int64(0); i < n; i++ {
		if _, err := message(); err != nil {
			return "", err
		}
	}
	return each(time.Since(start), n), nil
}

func timeFill(f *fields) (string, error) {
	out := make([]int64, f.integer())
	made, err := sampler(f.text(), f.double(), dpnoise.WithThreads(1))
	if err != nil {
		return "", err
	}
	defer made.Close()
	best := time.Duration(math.MaxInt64)
	for i := 0; i < 5; i++ {
		start := time.Now()
		if err := made.Fill(out); err != nil {
			return "", err
		}
		if took := time.Since(start); took < best {
			best = took
		}
	}
	return each(best, int64(len(out))), nil
}

func each(took time.Duration, n int64) string {
	return strconv.FormatFloat(float64(took.Nanoseconds())/float64(n), 'f', 3, 64)
}
