package dpnoise_test

import (
	"errors"
	"fmt"
	"log"
	"strings"

	dpnoise "github.com/dpnoise/dpnoise/clients/go"
)

// specification was announced by the collector.
var specification = []byte(
	`{"epsilon":1.0,"k":15,"p":1024,"planes":11,"protocol":"optimized_unary_encoding","q":551,"version":1}`)

func Example_report() {
	protocol, err := dpnoise.ParseProtocol(specification)
	if err != nil {
		log.Fatal(err)
	}
	defer protocol.Close()
	if protocol.Epsilon() > 1 || protocol.Delta() > 0 { // what the application promises to people
		log.Fatal("the collector asks for too much")
	}

	message, err := protocol.Message(7) // the answer, from 0 to k - 1
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(message), "bytes to send")
	// Output: 14 bytes to send
}

func Example_noise() {
	mechanism, err := dpnoise.DiscreteLaplace{Epsilon: 1, Sensitivity: 1}.Mechanism()
	if err != nil {
		log.Fatal(err)
	}
	defer mechanism.Close()

	counts := []int64{1203, 874, 41} // each person is in one of them at most
	released, err := mechanism.Release(counts)
	if err != nil {
		log.Fatal(err)
	}
	bound, err := mechanism.Error(0.95, len(counts))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(released), "counts; the error of each is at most", bound, "with a probability of 95 %")
	// Output: 3 counts; the error of each is at most 3 with a probability of 95 %
}

func ExampleAccumulator() {
	protocol, err := dpnoise.ParseProtocol(specification)
	if err != nil {
		log.Fatal(err)
	}
	defer protocol.Close()
	accumulator, err := protocol.NewAccumulator()
	if err != nil {
		log.Fatal(err)
	}
	defer accumulator.Close()

	messages, err := protocol.Messages([]int64{7, 7, 3, 7}) // in reality, from devices
	if err != nil {
		log.Fatal(err)
	}
	if err := accumulator.Add(append(messages, []byte("no message"))...); err != nil {
		log.Fatal(err)
	}
	counts, standardErrors, err := accumulator.Estimate()
	if err != nil {
		log.Fatal(err)
	}
	n, rejected, err := accumulator.Counts()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(counts), len(standardErrors), n, rejected)
	// Output: 15 15 4 1
}

func ExampleProtocol_About() {
	const survey = `{"epsilon":1.0,"k":15,"p":1024,"planes":11,"protocol":"optimized_unary_encoding","q":551,` +
		`"question":"favourite month","version":1}`
	protocol, err := dpnoise.ParseProtocol([]byte(survey))
	if err != nil {
		log.Fatal(err)
	}
	defer protocol.Close()

	week, err := protocol.About("", "2026-W48") // the question stays
	if err != nil {
		log.Fatal(err)
	}
	defer week.Close()
	fmt.Println(week.Specification())
	// Output: {"epsilon":1.0,"k":15,"p":1024,"period":"2026-W48","planes":11,"protocol":"optimized_unary_encoding","q":551,"question":"favourite month","version":1}
}

func ExampleProtocol_WithMemo() {
	const oneBit = `{"d":1,"epsilon":0.1,"k":40,"p":8601,"planes":14,"protocol":"d_bit_flip","q":7783,"version":1}`
	protocol, err := dpnoise.ParseProtocol([]byte(oneBit))
	if err != nil {
		log.Fatal(err)
	}
	defer protocol.Close()
	memo, err := dpnoise.NewMemo(1) // the first time; then dpnoise.ParseMemo of the bytes that were stored
	if err != nil {
		log.Fatal(err)
	}
	defer memo.Close()

	asked, err := protocol.WithMemo(memo, "What is your favourite colour?")
	if err != nil {
		log.Fatal(err)
	}
	defer asked.Close()
	first, err := asked.Message(7)
	if err != nil {
		log.Fatal(err)
	}
	second, err := asked.Message(7)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(first) == string(second))
	// Output: true
}

func ExampleError() {
	_, err := dpnoise.NewDiscreteLaplaceSampler(-1)
	var failed *dpnoise.Error
	if errors.As(err, &failed) {
		fmt.Println(failed.Status, errors.Is(err, dpnoise.ErrParameter), strings.HasPrefix(failed.Message, "scale must be"))
	}
	// Output: parameter true true
}

func ExampleWithRandom() {
	short := dpnoise.WithRandom(strings.NewReader("a token that has no more bytes"))
	sampler, err := dpnoise.NewDiscreteLaplaceSampler(10, short)
	if err != nil {
		log.Fatal(err)
	}
	defer sampler.Close()
	err = sampler.Fill(make([]int64, 1000))
	fmt.Println(errors.Is(err, dpnoise.ErrRandomness))
	// Output: true
}
