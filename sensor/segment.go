package sensor

import "inquest/record"

// Dimension is one property of a request and its value.
type Dimension struct{ Name, Value string }

// Segment is the visits of a service in one slice that agree in all dimensions.
type Segment struct {
	Service    string
	Dimensions []Dimension // by name
	Visits     int
	Failures   int // own errors
	// Own are times of visits that no other service accounts for, ms, and Quality is
	// what the service says of its answers; of some of the visits, evenly chosen,
	// where they are many.
	Own, Quality []float32
	// A few examples of each kind.
	Failing, Slowest, Poorest []record.Item
}
