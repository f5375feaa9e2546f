package otlpreceiver

import "google.golang.org/protobuf/encoding/protowire"

// message describes a message of OTLP as far as it takes to find the records in
// a request and to tell how much memory its decoded form needs.
type message struct {
	name string // for the sender, as in "span: …"
	role role
	// size is about what one such message takes in memory without its strings.
	size   int64
	fields []field
	// names are of fields that are not in fields, for the sender.
	names map[protowire.Number]string
}

// role says what the decoder does with a message.
type role uint8

const (
	part      role = iota // belongs to a record or a container
	container             // holds containers or records
	unit                  // a record: kept or refused as a whole
	packed                // not a message but packed numbers, each in 8 bytes when decoded
)

// field is a field that holds messages.
type field struct {
	num    protowire.Number
	camel  string // its name in JSON
	snake  string // its name in JSON as it is also accepted
	single bool   // not repeated
	msg    *message
}

func (m *message) byNumber(num protowire.Number) *field {
	for i := range m.fields {
		if m.fields[i].num == num {
			return &m.fields[i]
		}
	}
	return nil
}

func (m *message) byName(name string) *field {
	for i := range m.fields {
		if f := &m.fields[i]; name != "" && (f.camel == name || f.snake == name) {
			return f
		}
	}
	return nil
}

// holds tells whether the field leads to records.
func (f *field) holds() bool {
	return f != nil && (f.msg.role == container || f.msg.role == unit)
}

func (m *message) fieldName(num protowire.Number) string {
	if f := m.byNumber(num); f != nil && f.camel != "" {
		return f.camel
	}
	return m.names[num]
}

// attributes returns a field with key-value pairs, whose values may nest.
func attributes(num protowire.Number, name string) field {
	return field{num: num, camel: name, msg: keyValue}
}

var keyValue, anyValue = func() (*message, *message) {
	kv := &message{name: "attribute", size: 64}
	value := &message{name: "value", size: 48}
	list := &message{name: "list", size: 48, fields: []field{{num: 1, msg: value}}}
	kvlist := &message{name: "map", size: 48, fields: []field{{num: 1, msg: kv}}}
	kv.fields = []field{{num: 2, msg: value, single: true}}
	value.fields = []field{{num: 5, msg: list, single: true}, {num: 6, msg: kvlist, single: true}}
	return kv, value
}()

var (
	resource = &message{name: "resource", size: 64, fields: []field{
		attributes(1, "attributes"),
		{num: 3, msg: &message{name: "entity reference", size: 128}},
	}}
	scope = &message{name: "scope", size: 96, fields: []field{attributes(3, "attributes")}}

	numbers  = &message{role: packed}
	exemplar = &message{name: "exemplar", size: 112, fields: []field{attributes(7, "filteredAttributes")}}
)

// request builds the message of a request out of its records: resources, in
// them scopes, in them the records.
func request(signal, camel, snake string, record *message) *message {
	inScope := &message{name: "Scope" + signal, role: container, size: 224, fields: []field{
		{num: 1, camel: "scope", single: true, msg: scope},
		{num: 2, camel: camel, snake: snake, msg: record},
	}}
	lower := map[string]string{"Logs": "logs", "Spans": "spans", "Metrics": "metrics"}[signal]
	inResource := &message{name: "Resource" + signal, role: container, size: 224, fields: []field{
		{num: 1, camel: "resource", single: true, msg: resource},
		{num: 2, camel: "scope" + signal, snake: "scope_" + lower, msg: inScope},
		// Where scopes were before OTLP 0.15; read as the others are.
		{num: 1000, msg: inScope},
	}}
	return &message{name: "request", role: container, fields: []field{
		{num: 1, camel: "resource" + signal, snake: "resource_" + lower, msg: inResource},
	}}
}

var logsSchema = request("Logs", "logRecords", "log_records", &message{
	name: "log record", role: unit, size: 240,
	fields: []field{
		{num: 5, camel: "body", single: true, msg: anyValue},
		attributes(6, "attributes"),
	},
	names: map[protowire.Number]string{
		1: "timeUnixNano", 2: "severityNumber", 3: "severityText", 7: "droppedAttributesCount",
		8: "flags", 9: "traceId", 10: "spanId", 11: "observedTimeUnixNano", 12: "eventName",
	},
})

var tracesSchema = request("Spans", "spans", "spans", &message{
	name: "span", role: unit, size: 320,
	fields: []field{
		attributes(9, "attributes"),
		{num: 11, camel: "events", msg: &message{name: "event", size: 80, fields: []field{attributes(3, "attributes")}}},
		{num: 13, camel: "links", msg: &message{name: "link", size: 104, fields: []field{attributes(4, "attributes")}}},
	},
	names: map[protowire.Number]string{
		1: "traceId", 2: "spanId", 3: "traceState", 4: "parentSpanId", 5: "name", 6: "kind",
		7: "startTimeUnixNano", 8: "endTimeUnixNano", 10: "droppedAttributesCount",
		12: "droppedEventsCount", 14: "droppedLinksCount", 15: "status", 16: "flags",
	},
})

var metricsSchema = request("Metrics", "metrics", "metrics", &message{
	name: "metric", role: container, size: 176,
	fields: []field{
		points(5, "gauge", "gauge", numberPoint),
		points(7, "sum", "sum", numberPoint),
		points(9, "histogram", "histogram", histogramPoint),
		points(10, "exponentialHistogram", "exponential_histogram", exponentialPoint),
		points(11, "summary", "summary", summaryPoint),
		attributes(12, "metadata"),
	},
	names: map[protowire.Number]string{1: "name", 2: "description", 3: "unit"},
})

// points returns the field of a metric that holds its data points.
func points(num protowire.Number, camel, snake string, point *message) field {
	return field{num: num, camel: camel, snake: snake, single: true, msg: &message{
		name: camel, role: container, size: 64,
		fields: []field{{num: 1, camel: "dataPoints", snake: "data_points", msg: point}},
	}}
}

var (
	numberPoint = &message{
		name: "data point", role: unit, size: 136,
		fields: []field{attributes(7, "attributes"), {num: 5, camel: "exemplars", msg: exemplar}},
		names: map[protowire.Number]string{
			2: "startTimeUnixNano", 3: "timeUnixNano", 4: "asDouble", 6: "asInt", 8: "flags",
		},
	}
	histogramPoint = &message{
		name: "histogram data point", role: unit, size: 208,
		fields: []field{attributes(9, "attributes"), {num: 8, camel: "exemplars", msg: exemplar}},
		names: map[protowire.Number]string{
			2: "startTimeUnixNano", 3: "timeUnixNano", 4: "count", 5: "sum", 6: "bucketCounts",
			7: "explicitBounds", 10: "flags", 11: "min", 12: "max",
		},
	}
	exponentialPoint = &message{
		name: "exponential histogram data point", role: unit, size: 288,
		fields: []field{
			attributes(1, "attributes"),
			{num: 8, camel: "positive", single: true, msg: buckets},
			{num: 9, camel: "negative", single: true, msg: buckets},
			{num: 11, camel: "exemplars", msg: exemplar},
		},
		names: map[protowire.Number]string{
			2: "startTimeUnixNano", 3: "timeUnixNano", 4: "count", 5: "sum", 6: "scale",
			7: "zeroCount", 10: "flags", 12: "min", 13: "max", 14: "zeroThreshold",
		},
	}
	buckets      = &message{name: "buckets", fields: []field{{num: 2, camel: "bucketCounts", msg: numbers}}}
	summaryPoint = &message{
		name: "summary data point", role: unit, size: 136,
		fields: []field{attributes(7, "attributes"), {num: 6, camel: "quantileValues", msg: &message{name: "quantile", size: 24}}},
		names: map[protowire.Number]string{
			2: "startTimeUnixNano", 3: "timeUnixNano", 4: "count", 5: "sum", 8: "flags",
		},
	}
)
