package main

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Marks that stand in a sample line for the ids of the record it becomes.
const (
	traceMark = "\x00T\x00"
	spanMark  = "\x00S\x00"
)

const (
	maxSampleLines = 20_000
	maxSampleLine  = 4 << 10
)

var (
	traceInLine = regexp.MustCompile(`TraceID: [0-9a-f]{32}`)
	spanInLine  = regexp.MustCompile(`SpanID: [0-9a-f]{16}`)
)

// sampleLines reads log lines of the Nezha data set below dir, so that bodies
// are as varied as real ones. Without dir, or without the data set, there are
// none.
func sampleLines(dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "nezha-trainticket", "construct_data", "*", "log", "*_log.csv.gz"))
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, path := range files {
		more, err := sampleFile(path, maxSampleLines-len(lines))
		if err != nil {
			return nil, fmt.Errorf("cannot read sample lines from %s: %w", path, err)
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

func sampleFile(path string, limit int) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return parseSample(z, limit)
}

// parseSample reads the column Log, whose values are Docker's JSON log lines.
func parseSample(r io.Reader, limit int) ([]string, error) {
	c := csv.NewReader(r)
	c.FieldsPerRecord, c.ReuseRecord = -1, true
	column := -1
	var lines []string
	for len(lines) < limit {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if column < 0 {
			for i, name := range row {
				if name == "Log" {
					column = i
				}
			}
			if column < 0 {
				return nil, errors.New("there is no column Log")
			}
			continue
		}
		var entry struct {
			Log string `json:"log"`
		}
		if column >= len(row) || json.Unmarshal([]byte(row[column]), &entry) != nil {
			continue
		}
		line := strings.TrimSpace(entry.Log)
		if line == "" || len(line) > maxSampleLine {
			continue
		}
		line = traceInLine.ReplaceAllLiteralString(line, "TraceID: "+traceMark)
		lines = append(lines, spanInLine.ReplaceAllLiteralString(line, "SpanID: "+spanMark))
	}
	return lines, nil
}
