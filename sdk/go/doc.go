// Package inquest records what an AI service does, so that an inquest can be held
// when something breaks.
//
// A [Logger] writes one AI event for each of the seven nodes of a request's way
// (ingress, preprocess, feature, model load, inference, postprocess, egress) and
// for decisions. The caller passes only what it knows; ids, time, service, hash
// of the input and state of the device come from one template. With a spool
// ([inquest.dev/sdk/go/spool]) an event is on disk when the call returns.
//
// One request id goes through everything that a request does: it is in the
// context, in the baggage member request.id, in the header x-request-id
// ([inquest.dev/sdk/go/inquesthttp]), and, by [NewSpanProcessor],
// [NewLogProcessor] and [NewSlogHandler], on each span and log record.
//
// [inquest.dev/sdk/go/setup] wires all of it for an application that has no
// OpenTelemetry yet.
package inquest
