package recorder

import (
	"fmt"

	"inquest/admit"
	"inquest/record"
	"inquest/store"
)

// lettersOf returns the rows that keep what a request's admission refused.
func (r *Recorder) lettersOf(rep *admit.Report, received int64) []record.Row {
	letters := rep.TakeLetters()
	if len(letters) == 0 {
		return nil
	}
	var rows []record.Row
	for i := range letters {
		r.counts.letterReasons.add(letters[i].Reason)
		rows = append(rows, letters[i].Rows(i, received, rep.Source())...)
	}
	r.counts.deadLetters.Add(uint64(len(letters)))
	if r.opts.OnLetters != nil {
		r.opts.OnLetters(letters)
	}
	return rows
}

// maxLetters is above the number of letters of any request: each takes a byte of
// it at least.
const maxLetters = record.MaxBatchSize

// codeStore is the reason of letters about points that were acknowledged and
// that the store of samples did not take.
const codeStore = "store.refused"

// refusedPoints is the letter about points that the store of samples refused
// after they had been acknowledged. It cannot tell which these were.
func refusedPoints(b *batch, rej store.Rejection, no int) record.Row {
	l := admit.Letter{
		Reason: codeStore, Kind: admit.LetterPoint, Records: rej.Points, Encoding: admit.EncodingText,
		Detail: rej.Reason, Payload: fmt.Sprintf("%d points: %s", rej.Points, rej.Reason),
	}
	return l.Rows(no, b.received, "store")[0]
}
