package sensor

import "inquest/record"

// Dimension is one property of a request and its value.
type Dimension struct{ Name, Value string }

// Segment is the visits of one slice that agree in all dimensions.
type Segment struct {
	Service    string
	Dimensions []Dimension // by name
	// Outcomes are of some of the visits, evenly chosen where they are many.
	Outcomes []Outcome
	Visits   int
}

// Outcome is how one visit went.
type Outcome struct {
	Failed bool
	// Own is the time of the visit that no other service accounts for, ms.
	Own float64
	// Quality is what the service says of its answer, NaN when nothing.
	Quality float64
	Item    record.Item
}
