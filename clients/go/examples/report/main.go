// Command report answers a question. It reads a specification from a file, the answer from standard input (an argument
// could be seen by all users of the machine), and prints the message to be sent in hexadecimal:
//
//	echo 7 | report -question "What is your favourite colour?" -memo ~/.config/colours/memo specification.json
//
// Where people keep a memo, it is made when it is needed first, and kept in the file with how questions are answered.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	dpnoise "github.com/dpnoise/dpnoise/clients/go"
)

func main() {
	memo := flag.String("memo", "", "the file of the memo, for protocols in which people keep one")
	question := flag.String("question", "", "the words of the question, the same each time it is asked")
	limit := flag.Float64("limit", 4, "the largest epsilon that is answered")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	message, err := report(flag.Arg(0), *memo, *question, *limit, os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	fmt.Printf("%x\n", message)
}

func report(specification, memo, question string, limit float64, in io.Reader) ([]byte, error) {
	announced, err := os.ReadFile(specification) // the bytes as they came
	if err != nil {
		return nil, err
	}
	protocol, err := dpnoise.ParseProtocol(announced)
	if err != nil {
		return nil, err
	}
	defer protocol.Close()
	if protocol.Epsilon() > limit {
		return nil, fmt.Errorf("epsilon must be at most %v, got %v", limit, protocol.Epsilon())
	}
	if protocol.Delta() > 0 {
		return nil, fmt.Errorf("delta must be 0, got %v", protocol.Delta())
	}
	if protocol.KeepsMemo() {
		if memo == "" || question == "" {
			return nil, errors.New("people keep a memo for this protocol: -memo and -question must be given")
		}
		kept, err := keptMemo(memo)
		if err != nil {
			return nil, err
		}
		defer kept.Close()
		if protocol, err = protocol.WithMemo(kept, question); err != nil {
			return nil, err
		}
		defer protocol.Close()
		if err := store(kept, memo, os.Rename); err != nil {
			return nil, err
		}
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && err != io.EOF {
		return nil, err
	}
	return message(protocol, strings.TrimRight(line, "\r\n"))
}

// message randomises an answer. Errors of strconv show what they were given, so they are not passed on.
func message(protocol *dpnoise.Protocol, answer string) ([]byte, error) {
	switch protocol.Takes() {
	case dpnoise.Numbers:
		number, err := strconv.ParseFloat(answer, 64)
		if err != nil {
			return nil, errors.New("the answer must be a number")
		}
		return protocol.MessageOfNumber(number)
	case dpnoise.Texts:
		return protocol.MessageOfText(answer)
	default:
		integer, err := strconv.ParseInt(answer, 10, 64)
		if err != nil {
			return nil, errors.New("the answer must be an integer")
		}
		return protocol.Message(integer)
	}
}

// keptMemo reads the memo of this person, or makes it if there is none. One that is damaged is an error: a new one
// would spend epsilon again.
func keptMemo(path string) (*dpnoise.Memo, error) {
	secret, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if err := makeMemo(path); err != nil {
			return nil, err
		}
		secret, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	defer wipe(secret)
	return dpnoise.ParseMemo(secret)
}

// makeMemo writes a new memo. If another process was faster, its memo stays: unlike a new name, a link never takes the
// place of a file that is there.
func makeMemo(path string) error {
	memo, err := dpnoise.NewMemo(1)
	if err != nil {
		return err
	}
	defer memo.Close()
	if err := store(memo, path, os.Link); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// store writes a memo, complete or not at all: a device that fails between the steps has the memo as it was, and no
// report.
func store(memo *dpnoise.Memo, path string, place func(from, to string) error) error {
	secret, err := memo.Bytes()
	if err != nil {
		return err
	}
	defer wipe(secret)
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, ".memo-*") // only its owner may read it
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(secret)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := place(file.Name(), path); err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder has the disk keep the new name, too, before a report is made from the memo. Windows cannot be asked to.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

func wipe(secret []byte) {
	for i := range secret {
		secret[i] = 0
	}
}
