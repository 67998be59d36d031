package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	dpnoise "github.com/dpnoise/dpnoise/clients/go"
)

const (
	unary = `{"epsilon":1.0,"k":15,"p":1024,"planes":11,"protocol":"optimized_unary_encoding","q":551,"version":1}`
	// With d = 1 all of a report follows from the memo.
	oneBit = `{"d":1,"epsilon":0.1,"k":40,"p":8601,"planes":14,"protocol":"d_bit_flip","q":7783,"version":1}`
)

func announce(t *testing.T, specification string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "specification.json")
	if err := os.WriteFile(path, []byte(specification), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheMemoIsMadeOnceAndKept(t *testing.T) {
	specification, memo := announce(t, oneBit), filepath.Join(t.TempDir(), "new", "memo")
	ask := func(answer string) []byte {
		t.Helper()
		made, err := report(specification, memo, "colour", 4, strings.NewReader(answer+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	first := ask("7")
	info, err := os.Stat(memo)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the memo has mode %o", mode)
	}
	kept, err := os.ReadFile(memo)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, ask("7")) {
		t.Error("the second report on one answer is another one")
	}
	again, err := os.ReadFile(memo)
	if err != nil || !bytes.Equal(kept, again) {
		t.Error("the memo was replaced")
	}
	if len(kept) != 52+64 { // a secret, and how one question is answered
		t.Errorf("the memo has %d bytes", len(kept))
	}
	other := strings.NewReplacer("0.1,", "0.11,", "8601", "4321", "14", "13", "7783", "3871").Replace(oneBit)
	if _, err := report(announce(t, other), memo, "colour", 4, strings.NewReader("7\n")); !errors.Is(err, dpnoise.ErrState) {
		t.Errorf("a question was answered with two randomisers: %v", err)
	}
	left, err := os.ReadDir(filepath.Dir(memo))
	if err != nil || len(left) != 1 {
		t.Errorf("%d files are left, expected the memo alone", len(left))
	}
}

func TestTwoProcessesMakeOneMemo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memo")
	secrets := make([][]byte, 16)
	var group sync.WaitGroup
	for i := range secrets {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			memo, err := keptMemo(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer memo.Close()
			secrets[i], _ = memo.Bytes()
		}(i)
	}
	group.Wait()
	for _, secret := range secrets {
		if !bytes.Equal(secret, secrets[0]) {
			t.Error("one process answers from another memo")
		}
	}
}

func TestADamagedMemoIsNotReplaced(t *testing.T) {
	memo := filepath.Join(t.TempDir(), "memo")
	if err := os.WriteFile(memo, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := report(announce(t, oneBit), memo, "colour", 4, strings.NewReader("7\n"))
	if !errors.Is(err, dpnoise.ErrState) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadFile(memo); string(left) != "damaged" {
		t.Error("the memo was replaced")
	}
}

func TestWhatIsRefused(t *testing.T) {
	for name, given := range map[string]struct{ specification, memo, question, answer, message string }{
		"no memo": {oneBit, "", "colour", "7", "-memo"},
		"answer":  {unary, "", "", "987654321", "k = 15"},
		"word":    {unary, "", "", "987654321x", "integer"},
	} {
		_, err := report(announce(t, given.specification), given.memo, given.question, 1, strings.NewReader(given.answer))
		if err == nil || !strings.Contains(err.Error(), given.message) || strings.Contains(err.Error(), "98765") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	_, err := report(announce(t, unary), "", "", 0.5, strings.NewReader("7"))
	if err == nil || !strings.HasPrefix(err.Error(), "epsilon must be at most 0.5, got 0.99948") {
		t.Errorf("got %v", err)
	}
}
