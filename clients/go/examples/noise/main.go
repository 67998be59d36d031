// Command noise publishes a table of counts. It reads lines with a label, a comma and a count, and writes them with
// noise:
//
//	printf 'red,1203\ngreen,874\nother,41\n' | noise -epsilon 1
//
// Each person is in one count at most, so adding or removing a person changes the table by 1 at most. All counts
// together are one release that spends epsilon. The labels must not depend on the data: write one with a count of 0,
// too, if nobody has it.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	dpnoise "github.com/dpnoise/dpnoise/clients/go"
)

func main() {
	epsilon := flag.Float64("epsilon", 1, "what the release spends")
	flag.Parse()
	if err := publish(*epsilon, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "noise:", err)
		os.Exit(1)
	}
}

func publish(epsilon float64, in io.Reader, out io.Writer, options ...dpnoise.Option) error {
	labels, counts, err := table(in)
	if err != nil {
		return err
	}
	mechanism, err := dpnoise.DiscreteLaplace{Epsilon: epsilon, Sensitivity: 1}.Mechanism(options...)
	if err != nil {
		return err
	}
	defer mechanism.Close()
	released, err := mechanism.Release(counts)
	if err != nil {
		return err
	}
	bound, err := mechanism.Error(0.95, len(counts))
	if err != nil {
		return err
	}
	for i, label := range labels {
		if _, err := fmt.Fprintf(out, "%s,%d\n", label, released[i]); err != nil {
			return err
		}
	}
	const note = "# epsilon %v; the error of each is at most %v with a probability of 95 %%\n"
	_, err = fmt.Fprintf(out, note, epsilon, bound)
	return err
}

// table reads the true counts. They are private: no error shows one.
func table(in io.Reader) (labels []string, counts []int64, err error) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		label, count, found := strings.Cut(lines.Text(), ",")
		number, err := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
		if !found || err != nil {
			return nil, nil, fmt.Errorf("line %d must have a label, a comma and a count", len(labels)+1)
		}
		labels, counts = append(labels, label), append(counts, number)
	}
	return labels, counts, lines.Err()
}
