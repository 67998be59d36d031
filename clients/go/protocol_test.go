package dpnoise

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestTheFactsAreThoseOfTheSpecification(t *testing.T) {
	p := parse(t, unary)
	if p.Takes() != Integers || p.KeepsMemo() || p.K() != 15 || p.ReportBytes() != 2 {
		t.Errorf("got %v, %v, %d, %d", p.Takes(), p.KeepsMemo(), p.K(), p.ReportBytes())
	}
	if math.Abs(p.Epsilon()-1) > 0.001 {
		t.Errorf("epsilon is %v", p.Epsilon())
	}
	header := p.Header()
	if len(header) != HeaderBytes || p.ID() != "d63975fc79f37bc3" {
		t.Errorf("got %x and %s", header, p.ID())
	}
	header[0] = 'x'
	if p.Header()[0] != 'D' {
		t.Error("who changes a header changes that of the protocol")
	}
	if takes := parse(t, mean).Takes(); takes.String() != "numbers" {
		t.Errorf("a mean takes %v", takes)
	}
	if takes := parse(t, sketch).Takes(); takes.String() != "texts" {
		t.Errorf("a sketch takes %v", takes)
	}
	if !parse(t, oneBit).KeepsMemo() {
		t.Error("people keep no memo")
	}
}

func TestMessagesAreHeadersAndReports(t *testing.T) {
	values := []int64{0, 7, 14}
	messages := must(parse(t, unary, fixed(1)).Messages(values))
	reports := must(parse(t, unary, fixed(1)).Reports(values))
	p := parse(t, unary, fixed(1))
	for i, message := range messages {
		if !bytes.Equal(message, append(p.Header(), reports[2*i:2*i+2]...)) {
			t.Errorf("message %d is %x", i, message)
		}
		if cap(message) != len(message) {
			t.Error("who appends to a message overwrites the next one")
		}
	}
	if one := must(p.Message(0)); len(one) != HeaderBytes+2 || !bytes.HasPrefix(one, p.Header()) {
		t.Errorf("one message is %x", one)
	}
	of := parse(t, mean)
	if one := must(of.MessageOfNumber(-1)); !bytes.HasPrefix(one, of.Header()) {
		t.Errorf("the message of a number is %x", one)
	}
	if many := must(of.MessagesOfNumbers([]float64{0, 0.5})); len(many) != 2 {
		t.Errorf("got %x", many)
	}
	text := parse(t, sketch)
	if one := must(text.MessageOfText("plum")); !bytes.HasPrefix(one, text.Header()) {
		t.Errorf("the message of a text is %x", one)
	}
	long := strings.Repeat("a", 1<<16)
	if many := must(text.MessagesOfTexts([]string{"", "\x00", long})); len(many) != 3 {
		t.Errorf("got %x", many)
	}
}

func TestNoValuesMakeNoReports(t *testing.T) {
	p := parse(t, unary)
	if messages, err := p.Messages(nil); err != nil || len(messages) != 0 {
		t.Errorf("got %x and %v", messages, err)
	}
	if reports, err := p.Reports([]int64{}); err != nil || len(reports) != 0 {
		t.Errorf("got %x and %v", reports, err)
	}
	if reports, err := parse(t, mean).ReportsOfNumbers(nil); err != nil || len(reports) != 0 {
		t.Errorf("got %x and %v", reports, err)
	}
	if reports, err := parse(t, sketch).ReportsOfTexts(nil); err != nil || len(reports) != 0 {
		t.Errorf("got %x and %v", reports, err)
	}
}

func TestValuesMayBePartOfLargerThings(t *testing.T) {
	// Go refuses to pass such memory to C where it cannot see the type.
	var person struct {
		name          *string
		specification [len(unary)]byte
		values        [3]int64
	}
	person.name = new(string)
	copy(person.specification[:], unary)
	p := must(ParseProtocol(person.specification[:]))
	defer p.Close()
	if messages, err := p.Messages(person.values[:]); err != nil || len(messages) != 3 {
		t.Errorf("got %x and %v", messages, err)
	}
}

func TestAMemoIsKept(t *testing.T) {
	p := parse(t, oneBit)
	_, err := p.Message(7)
	fails(t, err, ErrParameter, "memo")

	memo := must(NewMemo(1))
	secret := must(memo.Bytes())
	asked := must(p.WithMemo(memo, "What is it?"))
	defer asked.Close()
	again := must(p.WithMemo(must(ParseMemo(secret)), "What is it?"))
	memo.Close()
	p.Close()
	for value := int64(0); value < 40; value++ {
		first := must(asked.Message(value))
		if !bytes.Equal(first, must(asked.Message(value))) || !bytes.Equal(first, must(again.Message(value))) {
			t.Fatal("an answer that was given once is another one now")
		}
	}
	_, err = asked.Message(98765)
	fails(t, err, ErrData, "")
	_, err = asked.Messages([]int64{1, 2})
	fails(t, err, ErrParameter, "")
}

func TestAnotherQuestionOrMemoHasOtherAnswers(t *testing.T) {
	p := parse(t, oneBit)
	const n = 64 // with n people all bits are the same with a probability below 2^-50
	values := make([]int64, n)
	memo := must(NewMemo(n))
	reports := must(must(p.WithMemo(memo, "one")).Reports(values))
	if bytes.Equal(reports, must(must(p.WithMemo(memo, "two")).Reports(values))) {
		t.Error("two questions have the same answers")
	}
	if bytes.Equal(reports, must(must(p.WithMemo(must(NewMemo(n)), "one")).Reports(values))) {
		t.Error("two memos have the same answers")
	}
	if !bytes.Equal(reports, must(must(p.WithMemo(memo, "one")).Reports(values))) {
		t.Error("one question has two answers")
	}
}

func TestTextsAreUTF8(t *testing.T) {
	p := parse(t, oneBit)
	_, err := p.WithMemo(must(NewMemo(1)), "\xff")
	fails(t, err, ErrParameter, "UTF-8")
	_, err = p.About("\xff", "")
	fails(t, err, ErrParameter, "question must be UTF-8")
	_, err = p.About("", "\xff")
	fails(t, err, ErrParameter, "period must be UTF-8")
}

func TestAnotherWeekIsAnotherCollection(t *testing.T) {
	p := parse(t, unary, fixed(1))
	survey := must(p.About("favourite colour", ""))
	week, next := must(survey.About("", "2026-W48")), must(survey.About("", "2026-W49"))
	p.Close()
	survey.Close()
	if !strings.Contains(week.Specification(), `"period":"2026-W48"`) ||
		!strings.Contains(week.Specification(), `"question":"favourite colour"`) {
		t.Errorf("got %s", week.Specification())
	}
	if week.ID() == next.ID() || week.BareDigest() != next.BareDigest() || week.BareDigest() == parse(t, other).BareDigest() {
		t.Errorf("the ids are %s and %s", week.ID(), next.ID())
	}
	if again := parse(t, week.Specification()); again.ID() != week.ID() {
		t.Errorf("a specification that was written has the id %s", again.ID())
	}
	accumulator := must(week.NewAccumulator())
	if err := accumulator.Add(must(next.Message(7)), must(week.Message(7))); err != nil {
		t.Fatal(err)
	}
	if n, rejected, err := accumulator.Counts(); n != 1 || rejected != 1 || err != nil {
		t.Errorf("%d counted, %d rejected, %v", n, rejected, err)
	}
	fails(t, accumulator.Merge(must(next.NewAccumulator())), ErrState, "about another period")
}

func TestAQuestionHasOneRandomiser(t *testing.T) {
	p, memo := parse(t, oneBit), must(NewMemo(1))
	must(p.WithMemo(memo, "colour"))
	kept := must(ParseMemo(must(memo.Bytes())))
	const again = `{"d":1,"epsilon":0.11,"k":40,"p":4321,"planes":13,"protocol":"d_bit_flip","q":3871,"version":1}`
	_, err := parse(t, again).WithMemo(kept, "colour")
	fails(t, err, ErrState, "costs epsilon again")
	must(must(p.About("colour", "2026-W48")).WithMemo(kept, "colour"))
	_, err = must(p.About("colour", "")).WithMemo(kept, "food")
	fails(t, err, ErrParameter, "question")
}
