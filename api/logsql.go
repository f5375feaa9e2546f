package api

import (
	"context"
	"strconv"
	"strings"

	"inquest/record"
	"inquest/store"
)

// ofType is a LogsQL filter for records of type t, and also of the service
// unless that is empty. Stream filters find whole streams by an index.
func ofType(t record.Type, service string) string {
	f := "{" + strconv.Quote(record.FieldType) + "=" + strconv.Quote(string(t))
	if service != "" {
		f += `,"service.name"=` + strconv.Quote(service)
	}
	return f + "}"
}

// equals is a LogsQL filter for a field that has exactly this value.
func equals(field, value string) string {
	return strconv.Quote(field) + ":=" + strconv.Quote(value)
}

// oneOf is a LogsQL filter for a field that has one of these values.
func oneOf(field string, values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = strconv.Quote(v)
	}
	return strconv.Quote(field) + ":in(" + strings.Join(quoted, ",") + ")"
}

// sortBy is a LogsQL pipe that keeps the first n rows by a field.
func sortBy(field string, newest bool, n int) string {
	p := "\n| sort by (" + strconv.Quote(field)
	if newest {
		p += " desc"
	}
	return p + ") limit " + strconv.Itoa(n)
}

// rows runs a query and returns its rows as maps.
func (s *server) rows(ctx context.Context, q store.RecordQuery) ([]map[string]string, error) {
	var rows []map[string]string
	err := s.cfg.Records.QueryRecords(ctx, q, func(fields []record.Field) error {
		row := make(map[string]string, len(fields))
		for _, f := range fields {
			if f.Value != "" {
				row[strings.Clone(f.Name)] = strings.Clone(f.Value)
			}
		}
		rows = append(rows, row)
		return nil
	})
	return rows, err
}
