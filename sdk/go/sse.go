package inquest

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// maxPending is how much of an unfinished line is kept. A longer one is not read.
const maxPending = 1 << 20

// SSE returns a function for [StreamReader] that reads the server-sent events of
// OpenAI-compatible servers (chat and text completions): characters of the
// answer, tokens where the server lists them (token_ids or logprobs), its own
// count (usage), and the end mark [DONE]. Use one for each stream, together with
// StreamOptions.WantEnd. What it cannot read counts as bytes.
func SSE() func([]byte) Chunk {
	var pending []byte
	skipping := false
	return func(b []byte) Chunk {
		out := Chunk{Bytes: len(b)}
		for len(b) > 0 {
			i := bytes.IndexByte(b, '\n')
			if i < 0 {
				if len(pending)+len(b) > maxPending {
					pending, skipping = nil, true
				}
				if !skipping {
					pending = append(pending, b...)
				}
				break
			}
			line := b[:i]
			if len(pending) > 0 {
				line = append(pending, line...)
			}
			if !skipping {
				add(&out, sseLine(line))
			}
			pending, skipping, b = pending[:0], false, b[i+1:]
		}
		return out
	}
}

// completion is what is read of a chunk's JSON.
type completion struct {
	Choices []struct {
		Text  string `json:"text"`
		Delta struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
		} `json:"delta"`
		TokenIDs []json.Number `json:"token_ids"`
		Logprobs *struct {
			Content []json.RawMessage `json:"content"`
			Tokens  []json.RawMessage `json:"tokens"`
		} `json:"logprobs"`
	} `json:"choices"`
	Usage *struct {
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
}

func sseLine(line []byte) Chunk {
	data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r"), []byte("data:"))
	if !ok {
		return Chunk{}
	}
	data = bytes.TrimSpace(data)
	if string(data) == "[DONE]" {
		return Chunk{Last: true}
	}
	var c completion
	if json.Unmarshal(data, &c) != nil {
		return Chunk{}
	}
	var out Chunk
	for _, choice := range c.Choices {
		out.Characters += utf8.RuneCountInString(choice.Text) +
			utf8.RuneCountInString(choice.Delta.Content) + utf8.RuneCountInString(choice.Delta.Reasoning)
		switch {
		case len(choice.TokenIDs) > 0:
			out.Tokens += len(choice.TokenIDs)
		case choice.Logprobs != nil:
			out.Tokens += len(choice.Logprobs.Content) + len(choice.Logprobs.Tokens)
		}
	}
	if c.Usage != nil {
		out.ServerTokens = max(0, c.Usage.CompletionTokens)
	}
	return out
}
