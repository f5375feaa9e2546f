package otlpreceiver

import (
	"fmt"

	"google.golang.org/grpc/codes"

	"inquest/admit"
)

// encoding is how a request is written.
type encoding uint8

const (
	protobuf encoding = iota
	jsonText
)

func (e encoding) String() string {
	if e == jsonText {
		return "json"
	}
	return "protobuf"
}

// decode reads a request. What is wrong with single records goes to the report
// and these are left out; an error means that the request as a whole cannot be
// read and nothing of it is kept.
func (s *signal[T]) decode(body []byte, enc encoding, report *admit.Report) (data T, err error) {
	// A defect in a decoder costs the request that meets it, not the process.
	defer func() {
		if p := recover(); p != nil {
			err = malformed("request cannot be decoded: %v", p)
		}
	}()
	if enc == jsonText {
		data, err = s.decodeJSON(body, report)
	} else {
		data, err = s.decodeProto(body, report)
	}
	if err != nil {
		return data, err
	}
	return data, nil
}

func (s *signal[T]) decodeProto(body []byte, report *admit.Report) (T, error) {
	var none T
	if err := checkMemory(s.schema, body); err != nil {
		return none, err
	}
	data, err := s.proto(body)
	if err == nil {
		report.SetBody(body)
		return data, nil
	}
	f := &protoFilter{report: report, kind: s.kind, strict: func(b []byte) error {
		_, err := s.proto(b)
		return err
	}}
	good, ferr := f.request(s.schema, body)
	if ferr != nil {
		return none, ferr
	}
	data, err = s.proto(good)
	if err != nil {
		return none, malformed("request is not an OTLP protobuf message: %s", cause(err))
	}
	return data, nil
}

func (s *signal[T]) decodeJSON(body []byte, report *admit.Report) (T, error) {
	var none T
	shape, err := inspect(body)
	if err != nil {
		return none, err
	}
	strict := s.json
	if shape.depth > safeDepth {
		strict = s.jsonReadableAgain
	}
	if !shape.emptyKey {
		if data, err := strict(body); err == nil {
			if s.count(data) == 0 {
				warnForeign(s.schema, body, report)
			}
			return data, nil
		}
	}
	f := &jsonFilter{report: report, kind: s.kind, strict: func(b []byte) error {
		_, err := strict(b)
		return err
	}}
	good, err := f.request(s.schema, body)
	if err != nil {
		return none, err
	}
	data, err := strict(good)
	if err != nil {
		return none, malformed("request is not an OTLP JSON message: %s", cause(err))
	}
	return data, nil
}

// warnForeign remarks what a request without records holds instead: most often
// another signal, sent to the wrong path, which must not vanish without a word.
func warnForeign(m *message, body []byte, report *admit.Report) {
	members(body, func(key string, _ []byte) {
		if m.byName(key) == nil {
			report.Warn(fmt.Sprintf("request has no %s but %.40q, which is ignored: was it sent to the right path?", m.fields[0].camel, key))
		}
	})
}

// jsonReadableAgain decodes JSON and makes sure that the result can be read
// back from protobuf, which nests less deeply: what is acknowledged is kept as
// protobuf and must be readable after a restart.
func (s *signal[T]) jsonReadableAgain(body []byte) (T, error) {
	data, err := s.json(body)
	if err != nil {
		return data, err
	}
	again, err := s.marshal(data)
	if err != nil {
		return data, err
	}
	_, err = s.proto(again)
	return data, err
}

// codeDecode is the reason of dead letters that hold what does not decode.
const codeDecode = "decode"

// refusal is why a whole request is not taken, and what to answer.
type refusal struct {
	code codes.Code
	http int
	text string
}

func (r *refusal) Error() string { return r.text }

// malformed is the answer to a request that cannot be read; the same request
// must not be sent again.
func malformed(format string, args ...any) error {
	return &refusal{code: codes.InvalidArgument, http: 400, text: fmt.Sprintf(format, args...)}
}
