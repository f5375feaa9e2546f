package fault

import (
	"time"

	"inquest/lab/system"
)

const scorer = "service:scorer service:features service:recommender"

// inputs are faults of what models are given and of which models they are.
func inputs() []Fault {
	return []Fault{
		{ID: "wrong-model-version", Variants: []Variant{
			{Name: "link to an older one", At: "service:scorer model_version:ctr-2025-11", Apply: wrongModel(2, 0.12)},
			{Name: "one replica", At: "service:scorer model_version:ctr-2025-11", Apply: wrongModel(1, 0.2)},
			{Name: "hardly worse", At: "service:scorer model_version:ctr-2025-11", Apply: wrongModel(2, 0.03)},
		}},
		{ID: "feature-default", Variants: []Variant{
			{Name: "all new users", At: scorer, Apply: func(s *system.System) { s.DefaultFeatures = 1 }},
			{Name: "half of them", At: scorer, Apply: func(s *system.System) { s.DefaultFeatures = 0.5 }},
			{Name: "new release", At: scorer, Apply: func(s *system.System) {
				rollout(s, "features", "3.1.0", nil)
				s.DefaultFeatures = 0.9
			}},
		}},
		{ID: "unseen-category", Variants: []Variant{
			{Name: "one in five", At: scorer, Apply: func(s *system.System) { s.UnseenDevices = 0.2 }},
			{Name: "half", At: scorer, Apply: func(s *system.System) { s.UnseenDevices = 0.5 }},
			{Name: "one in twelve", At: scorer, Apply: func(s *system.System) { s.UnseenDevices = 0.08 }},
		}},
		{ID: "wrong-normalisation", Variants: []Variant{
			{Name: "times hundred", At: scorer, Apply: func(s *system.System) { s.Scale = 100 }},
			{Name: "times five", At: scorer, Apply: func(s *system.System) { s.Scale = 5 }},
			{Name: "a tenth", At: scorer, Apply: func(s *system.System) {
				rollout(s, "features", "3.0.6", nil)
				s.Scale = 0.1
			}},
		}},
		{ID: "silent-truncation", Variants: []Variant{
			{Name: "512", At: "service:tokenizer", Apply: func(s *system.System) { s.TokenizerMax = 512 }},
			{Name: "1280", At: "service:tokenizer", Apply: func(s *system.System) { s.TokenizerMax = 1280 }},
			{Name: "new version", At: "service:tokenizer", Apply: func(s *system.System) {
				rollout(s, "tokenizer", "0.22.0", nil)
				s.TokenizerMax = 1024
			}},
		}},
		{ID: "nan-input", Variants: []Variant{
			{Name: "a third", At: scorer, Apply: func(s *system.System) { s.NaN = 0.33 }},
			{Name: "one in ten", At: scorer, Apply: func(s *system.System) { s.NaN = 0.1 }},
			{Name: "most", At: scorer, Apply: func(s *system.System) { s.NaN = 0.8 }},
		}},
		{ID: "cpu-fallback", Variants: []Variant{
			{Name: "vision", At: "service:vision gpu:GPU-7d1f", Apply: fallback(true, false)},
			{Name: "embedder", At: "service:embedder gpu:GPU-7d1e", Apply: fallback(false, true)},
			{Name: "vision, without a restart", At: "service:vision gpu:GPU-7d1f", Apply: func(s *system.System) { s.VisionCard.OnCPU = true }},
		}},
		{ID: "data-drift-segment", Variants: []Variant{
			{Name: "ap-south", At: scorer, Apply: func(s *system.System) { s.DriftRegion = "ap-south" }},
			{Name: "eu-west", At: scorer, Apply: func(s *system.System) { s.DriftRegion = "eu-west" }},
			{Name: "ap-south, more load", At: scorer, Prepare: load(1.3), Apply: func(s *system.System) { s.DriftRegion = "ap-south" }},
		}},
	}
}

// wrongModel has n replicas of the scorer load another model than is configured.
func wrongModel(n int, worse float64) func(*system.System) {
	return func(s *system.System) {
		for i, p := range s.Services["scorer"].Pods[:n] {
			s.World.Sim.After(time.Duration(i)*15*second, func() {
				s.Quality[p], s.ModelVersion[p] = worse, "ctr-2025-11"
				p.Deploy(p.Version, "registry.local/scorer:"+p.Version, 6*second)
			})
		}
	}
}

func fallback(vision, embedder bool) func(*system.System) {
	return func(s *system.System) {
		for _, k := range []struct {
			card *system.Card
			do   bool
		}{{s.VisionCard, vision}, {s.EmbedCard, embedder}} {
			if k.do {
				k.card.OnCPU = true
				k.card.Pod.Deploy(k.card.Pod.Version, "registry.local/"+k.card.Pod.Service+":"+k.card.Pod.Version, 5*second)
			}
		}
	}
}
