package sensor

import (
	"cmp"
	"slices"

	"inquest/record"
)

// Stream is what the log of one entity shows in one slice.
type Stream struct {
	Records int
	// Requests is how many requests have a record of it.
	Requests    float64
	First, Last int64 // times of records, ns
	// Gaps are the longest times without a record between two records, the longest
	// first.
	Gaps []Range
	// Topics are what its records speak of, by the topic's name.
	Topics map[string]*Topic
	// Service is what the entity is a part of, empty when it is none or unknown.
	Service string
}

// Topic is how often a log speaks of one thing.
type Topic struct {
	// Requests counts the requests with such a record, Bursts the times at which
	// such records came that belong to no request.
	Requests, Bursts float64
	Items            []record.Item // the first few
}

// gapCap bounds the gaps that are kept of one stream in one slice.
const gapCap = 24

// Stream returns the stream of an entity.
func (p *Profile) Stream(e record.Entity) *Stream {
	s := p.Streams[e]
	if s == nil {
		s = &Stream{Topics: map[string]*Topic{}}
		p.Streams[e] = s
	}
	return s
}

// Topic returns a topic of the stream.
func (s *Stream) Topic(name string) *Topic {
	t := s.Topics[name]
	if t == nil {
		t = &Topic{}
		s.Topics[name] = t
	}
	return t
}

// Note keeps an example.
func (t *Topic) Note(item record.Item) {
	if len(t.Items) < itemCap {
		t.Items = append(t.Items, item)
	}
}

// Longest sorts gaps, the longest first, and cuts those beyond the cap.
func Longest(gaps []Range) []Range {
	slices.SortFunc(gaps, func(a, b Range) int {
		return cmp.Or(cmp.Compare(b.To-b.From, a.To-a.From), cmp.Compare(a.From, b.From))
	})
	return gaps[:min(len(gaps), gapCap)]
}

// Join adds the stream of a later slice.
func (s *Stream) Join(o *Stream) {
	if o.Records > 0 {
		if s.Records > 0 {
			if o.First > s.Last {
				s.Gaps = append(s.Gaps, Range{s.Last, o.First})
			}
			s.First, s.Last = min(s.First, o.First), max(s.Last, o.Last)
		} else {
			s.First, s.Last = o.First, o.Last
		}
		s.Gaps = Longest(append(s.Gaps, o.Gaps...))
	}
	s.Records, s.Requests = s.Records+o.Records, s.Requests+o.Requests
	if s.Service == "" {
		s.Service = o.Service
	}
	for name, from := range o.Topics {
		to := s.Topic(name)
		to.Requests, to.Bursts = to.Requests+from.Requests, to.Bursts+from.Bursts
		to.Items = append(to.Items, from.Items[:min(len(from.Items), itemCap-len(to.Items))]...)
	}
}

// joinStreams adds the streams of a later slice to out.
func joinStreams(out, p *Profile) {
	for e, s := range p.Streams {
		out.Stream(e).Join(s)
	}
}
