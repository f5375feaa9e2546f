package inquest

import (
	"context"
	"io"
	"iter"
)

// StreamReader returns a reader of the same bytes that records each read as a
// chunk. read says what a chunk holds; nil is [Text], and [SSE] reads the answers
// of OpenAI-compatible servers. Close the reader: without it the record ends with
// ctx at the latest.
func StreamReader(ctx context.Context, r io.ReadCloser, opts StreamOptions, read func([]byte) Chunk) io.ReadCloser {
	if read == nil {
		read = Text
	}
	return &streamReader{NewStream(ctx, opts), r, read}
}

type streamReader struct {
	stream *Stream
	from   io.ReadCloser
	read   func([]byte) Chunk
}

func (r *streamReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if n > 0 {
		r.stream.Chunk(r.read(b[:n]))
	}
	if err != nil {
		r.stream.End(err)
	}
	return n, err
}

func (r *streamReader) Close() error {
	err := r.from.Close()
	r.stream.Close()
	return err
}

// StreamSeq returns the same sequence and records each value as a chunk. read
// says what a value holds. A pair with an error ends the record with it; a
// consumer that breaks off leaves a partial stream. Each iteration is a stream of
// its own.
func StreamSeq[T any](ctx context.Context, seq iter.Seq2[T, error], opts StreamOptions, read func(T) Chunk) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		s := NewStream(ctx, opts)
		defer s.Close() // by a break or a panic; after the end it does nothing
		for v, err := range seq {
			if err != nil {
				s.End(err)
				yield(v, err)
				return
			}
			s.Chunk(read(v))
			if !yield(v, nil) {
				return
			}
		}
		s.End(nil)
	}
}
