package local

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"inquest/record"
	"inquest/store"
)

// What is remembered of a row must not show in the next one: rows whose names
// differ, are in another order, or are of other streams and days.
func TestRowsKeepTheirFields(t *testing.T) {
	r := openRecords(t, RecordsOptions{Dir: t.TempDir()})
	defer r.Close()
	at := time.Now().Add(-3 * 24 * time.Hour)
	var rows []record.Row
	var want []string
	add := func(day int, stream, fields string) {
		row := record.Row{Time: at.Add(time.Duration(day)*24*time.Hour + time.Duration(len(rows))*time.Second).UnixNano()}
		var all []string
		for _, part := range []struct {
			text string
			to   *[]record.Field
		}{{stream, &row.Stream}, {fields + " i=" + fmt.Sprint(len(rows)), &row.Fields}} {
			for _, f := range strings.Fields(part.text) {
				name, value, _ := strings.Cut(f, "=")
				*part.to = append(*part.to, record.Field{Name: name, Value: value})
				if value != "" {
					all = append(all, f)
				}
			}
		}
		slices.Sort(all)
		want = append(want, strings.Join(all, " "))
		rows = append(rows, row)
	}
	for day := range 2 {
		add(day, "s=1 t=2", "ab=1 cd=2 _msg=x")
		add(day, "s=1 t=2", "ab=3 cd=4 _msg=y")
		add(day, "s=1 t=2", "cd=5 ab=6 _msg=x")
		add(day, "s=1 t=2", "_msg=z ab=7 cd=8")
		add(day, "s=1 t=2", "ab= cd=9 _msg=x")
		add(day, "s=1 t=3", "ab=1 cd=2")
		add(day, "t=2 s=1", "ab=1 cd=2")
		add(day, "s=1", "t=2 ab=1 cd=2")
		add(day, "", "s=1 t=2 ab=1 cd=2")
		add(day, "s=1 t=2", "zz=1 aa=2 ba=3 ac=4 ad=5 ae=6 af=7 ag=8 ah=9 ai=10 aj=11 ak=12 al=13 am=14")
	}
	for i := range rows {
		if err := r.Append(t.Context(), store.Batch{Seq: uint64(i + 1), Rows: rows[i : i+1]}); err != nil {
			t.Fatal(err)
		}
		if i == 4 {
			if err := r.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	streams := map[string]int{}
	if err := r.QueryRecords(t.Context(), store.RecordQuery{LogsQL: "* | sort by (_time)"}, func(fields []record.Field) error {
		var all []string
		for _, f := range fields {
			switch f.Name {
			case record.FieldStream:
				streams[f.Value]++
			case record.FieldTime, record.FieldStreamID:
			default:
				if f.Value != "" {
					all = append(all, f.Name+"="+f.Value)
				}
			}
		}
		slices.Sort(all)
		got = append(got, strings.Join(all, " "))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if text := fmt.Sprint(streams); text != `map[{s="1",t="2"}:14 {s="1",t="3"}:2 {s="1"}:2 {}:2]` {
		t.Errorf("streams %s", text)
	}
}
