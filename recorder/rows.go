package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"inquest/journal"
	"inquest/record"
)

// Rows records what inquest itself has to say, such as a verdict. It is durable
// when Rows returns nil. The rows' stream holds their [record.Type]; the number
// of the journal entry is added to their fields.
func (r *Recorder) Rows(ctx context.Context, rows []record.Row) error {
	bounds := r.bounds(r.opts.Records)
	for _, row := range rows {
		if row.Time < bounds.Earliest.UnixNano() || row.Time > bounds.Latest.UnixNano() {
			return fmt.Errorf("cannot record a row of %s: it is outside the retention", time.Unix(0, row.Time).UTC())
		}
		size := 0
		for _, f := range slices.Concat(row.Stream, row.Fields) {
			size += len(f.Name) + len(f.Value)
		}
		if size > record.MaxRowSize {
			return fmt.Errorf("cannot record a row of %d bytes: at most %d are kept", size, record.MaxRowSize)
		}
	}
	payload, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("cannot encode rows: %w", err)
	}
	// What is applied is what would be read back.
	own, err := decodeRows(payload)
	if err != nil {
		return err
	}
	return r.append(ctx, &batch{received: time.Now().UnixNano(), rows: own}, journal.KindRows, payload)
}

func decodeRows(payload []byte) ([]record.Row, error) {
	var rows []record.Row
	if err := json.Unmarshal(payload, &rows); err != nil {
		return nil, fmt.Errorf("cannot decode rows: %w", err)
	}
	return rows, nil
}

// withSeq adds the number of the journal entry, from which dead letters get
// their id.
func withSeq(rows []record.Row, seq uint64) []record.Row {
	out := make([]record.Row, len(rows))
	number := strconv.FormatUint(seq, 10)
	for i, row := range rows {
		row.Fields = append(slices.Clone(row.Fields), record.Field{Name: record.FieldSeq, Value: number})
		for j, f := range row.Fields {
			if f.Name == record.FieldLetterNo {
				row.Fields[j] = record.Field{Name: record.FieldLetterID, Value: number + "-" + f.Value}
			}
		}
		out[i] = row
	}
	return out
}
