package system

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"inquest/lab/sim"
)

// Request is what a user asks.
type Request struct {
	ID      string
	Kind    Kind
	Segment string // of the user: free, pro, enterprise, new
	Region  string
	User    string
	Device  string // category: web, ios, android, tv

	Prompt, Output int // tokens
	Prefix         []uint64
	Adapter        string
	ImageKey       string
	ImageBytes     int
	Injected       bool // an attack
}

// Kind is a kind of request.
type Kind string

// The kinds of requests.
const (
	Chat      Kind = "chat"
	Recommend Kind = "recommend"
	Vision    Kind = "vision"
	Ingest    Kind = "ingest"
)

// Sizes are the lengths of one generation.
type Sizes struct {
	Prompt, Output int
	Prefix         []uint64 // hashes of pieces of 512 tokens
}

// LoadSizes reads lengths and prefixes of requests as they were recorded at real
// services, from the files azure-llm-2023-conv.csv and mooncake-conversation.jsonl
// of dir.
func LoadSizes(dir string) ([]Sizes, error) {
	var out []Sizes
	f, err := os.Open(filepath.Join(dir, "azure-llm-2023-conv.csv"))
	if err != nil {
		return nil, fmt.Errorf("cannot read recorded requests: %w", err)
	}
	defer f.Close()
	rows, err := csv.NewReader(bufio.NewReader(f)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", f.Name(), err)
	}
	for i, row := range rows[min(1, len(rows)):] {
		if len(row) != 3 {
			return nil, fmt.Errorf("cannot read %s: row %d has %d columns, not 3", f.Name(), i+2, len(row))
		}
		p, err1 := strconv.Atoi(row[1])
		o, err2 := strconv.Atoi(row[2])
		if err1 != nil || err2 != nil || p < 1 || o < 1 {
			return nil, fmt.Errorf("cannot read %s: row %d has no two lengths", f.Name(), i+2)
		}
		out = append(out, Sizes{Prompt: p, Output: o})
	}
	prefixes, err := loadPrefixes(filepath.Join(dir, "mooncake-conversation.jsonl"))
	if err != nil {
		return nil, err
	}
	// The one trace has lengths of short conversations, the other what they share.
	for i := range out {
		if len(prefixes) == 0 {
			break
		}
		p := prefixes[i%len(prefixes)]
		out[i].Prefix = p[:min(len(p), out[i].Prompt/prefixTokens)]
	}
	return out, nil
}

func loadPrefixes(path string) ([][]uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read recorded requests: %w", err)
	}
	defer f.Close()
	var out [][]uint64
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var row struct {
			Hashes []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(in.Bytes(), &row); err != nil {
			return nil, fmt.Errorf("cannot read %s: line %d: %w", path, len(out)+1, err)
		}
		out = append(out, row.Hashes)
	}
	return out, in.Err()
}

// prefixTokens is how many tokens of a prompt have one hash.
const prefixTokens = 512

// sizes draws the lengths of one generation: from the recorded ones, or from a
// distribution like theirs.
func (s *System) sizes(rng *rand.Rand) Sizes {
	if n := len(s.opt.Sizes); n > 0 {
		z := s.opt.Sizes[rng.IntN(n)]
		z.Prompt, z.Output = min(z.Prompt, 6000), min(z.Output, 800)
		return z
	}
	return Sizes{
		Prompt: int(min(6000, max(30, 700*math.Exp(0.9*rng.NormFloat64())))),
		Output: int(min(800, max(8, 130*math.Exp(0.7*rng.NormFloat64())))),
	}
}

// systemPrompt is how many pieces of a prompt all chats share.
const systemPrompt = 2

var (
	segments = []string{"free", "pro", "enterprise", "new"}
	regions  = []string{"eu-west", "us-east", "ap-south"}
	devices  = []string{"web", "ios", "android", "tv"}
	adapters = []string{"", "", "", "support-de", "legal-v3"}
)

func weighted(rng *rand.Rand, values []string, weights ...float64) string {
	x := rng.Float64()
	for i, w := range weights {
		if x -= w; x < 0 {
			return values[i]
		}
	}
	return values[len(values)-1]
}

// request draws what the next user asks.
func (s *System) request(n int, kind Kind) *Request {
	rng := s.users
	r := &Request{
		ID: fmt.Sprintf("req-%06d", n), Kind: kind,
		Segment: weighted(rng, segments, 0.5, 0.3, 0.1, 0.1), Region: weighted(rng, regions, 0.4, 0.4, 0.2),
		Device: weighted(rng, devices, 0.4, 0.3, 0.25, 0.05),
		User:   fmt.Sprintf("u%d", int(400*math.Pow(rng.Float64(), 1.6))),
	}
	z := s.sizes(rng)
	r.Prompt, r.Output = z.Prompt+systemPrompt*prefixTokens, z.Output
	for k := range systemPrompt {
		r.Prefix = append(r.Prefix, uint64(1_000_000+k))
	}
	if z.Prefix != nil {
		r.Prefix = append(r.Prefix, z.Prefix...)
	} else {
		for k := range z.Prompt / prefixTokens {
			r.Prefix = append(r.Prefix, uint64(n)<<20+uint64(2_000_000+k))
		}
	}
	r.Adapter = adapters[rng.IntN(len(adapters))]
	r.ImageKey = fmt.Sprintf("img%d", int(250*math.Pow(rng.Float64(), 2)))
	r.ImageBytes = int(1.6e6 * math.Exp(0.12*rng.NormFloat64()))
	return r
}

// arrive lets users come for as long as the world runs.
func (s *System) arrive() {
	clock := s.World.Sim.Rand("arrivals")
	s.World.Sim.Go(func(p *sim.Proc) {
		for n := 0; ; n++ {
			rate := s.opt.Rate * s.Load * s.wave
			p.Sleep(time.Duration(clock.ExpFloat64() / rate * 1e9))
			kind := Kind(weighted(clock, []string{string(Chat), string(Recommend), string(Vision), string(Ingest)}, s.Mix[0], s.Mix[1], s.Mix[2]))
			r := s.request(n, kind)
			if kind == Chat && s.Inject > 0 && s.users.Float64() < s.Inject {
				r.Injected = true
			}
			s.World.Sim.Go(func(p *sim.Proc) { s.ask(p, r) })
		}
	})
}
