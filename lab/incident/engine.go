package incident

import (
	"cmp"
	"slices"
)

// Settings of the model server: how many sequences it runs at once, how many
// tokens one step computes, how many its key-value cache holds, and what a step
// costs in seconds.
const (
	maxSequences = 64
	stepTokens   = 2048
	cacheTokens  = 46_000
	cpuStep      = 0.007   // scheduling, sampling and detokenising, on the processor
	gpuStep      = 0.011   // reading the weights
	gpuSequence  = 0.0002  // each sequence that decodes
	gpuPrefill   = 0.00009 // each token of a prompt
)

// job is a request in a model server.
type job struct {
	arrive, deadline float64
	prompt, output   int

	scheduled, first, end float64 // 0 until it happened; jobs arrive later than 0
	aborted               bool
	computed, generated   int
}

func (j *job) size() int { return j.computed + j.generated }

// snapshot is the state of an engine at a moment.
type snapshot struct {
	time                         float64
	running, waiting             int
	cache                        float64
	prompt, generated, preempted int
	gpu                          float64 // seconds of GPU time so far
}

// snapshotEvery is the time between two snapshots.
const snapshotEvery = 5.0

// engine is the scheduler of a model server: first come, first served, prompts
// in chunks beside the running sequences, and the latest sequence is thrown out
// and computed again when the cache is full.
type engine struct {
	pod      *Pod
	slowdown func(t float64) float64
	jobs     []*job

	time             float64
	waiting, running []*job
	now              snapshot
	snapshots        []snapshot
}

// run serves all jobs and notes the state until the end.
func (e *engine) run(end float64) {
	slices.SortStableFunc(e.jobs, func(a, b *job) int { return cmp.Compare(a.arrive, b.arrive) })
	next := 0
	for next < len(e.jobs) || len(e.waiting)+len(e.running) > 0 {
		if len(e.waiting)+len(e.running) == 0 {
			e.advance(max(e.time, e.jobs[next].arrive))
		}
		for next < len(e.jobs) && e.jobs[next].arrive <= e.time {
			e.waiting = append(e.waiting, e.jobs[next])
			next++
		}
		e.abort()
		e.admit()
		e.step()
	}
	e.advance(end)
}

// advance moves the clock and takes the snapshots on the way.
func (e *engine) advance(to float64) {
	for t := float64(len(e.snapshots)) * snapshotEvery; t <= to; t += snapshotEvery {
		s := e.now
		s.time, s.running, s.waiting = t, len(e.running), len(e.waiting)
		s.cache = float64(e.used()) / cacheTokens
		e.snapshots = append(e.snapshots, s)
	}
	e.time = to
}

func (e *engine) used() int {
	n := 0
	for _, j := range e.running {
		n += j.size()
	}
	return n
}

// abort drops the jobs whose callers have gone.
func (e *engine) abort() {
	gone := func(j *job) bool {
		if e.time < j.deadline {
			return false
		}
		j.aborted, j.end = true, e.time
		return true
	}
	e.waiting = slices.DeleteFunc(e.waiting, gone)
	e.running = slices.DeleteFunc(e.running, gone)
}

// admit moves jobs from the queue into the batch as long as their prompts fit.
func (e *engine) admit() {
	free := cacheTokens*99/100 - e.used()
	for _, j := range e.running {
		free -= j.left() // what is still to be computed of admitted prompts
	}
	for len(e.waiting) > 0 && len(e.running) < maxSequences {
		j := e.waiting[0]
		if need := j.prompt + j.generated; need > free {
			return
		} else {
			free -= need
		}
		if j.scheduled == 0 {
			j.scheduled = max(e.time, j.arrive)
		}
		e.waiting = e.waiting[1:]
		e.running = append(e.running, j)
	}
}

func (j *job) left() int { return j.prompt - j.computed }

// step computes one batch.
func (e *engine) step() {
	if len(e.running) == 0 {
		e.advance(e.time + cpuStep)
		return
	}
	decoding := 0
	for _, j := range e.running {
		if j.left() == 0 {
			decoding++
		}
	}
	for decoding > 0 && e.used()+decoding > cacheTokens {
		last := e.running[len(e.running)-1]
		e.running = e.running[:len(e.running)-1]
		if last.left() == 0 {
			decoding--
		}
		// Its prompt and what it has said so far must be computed again.
		last.prompt, last.output = last.prompt+last.generated, last.output-last.generated
		last.computed, last.generated = 0, 0
		e.waiting = slices.Insert(e.waiting, 0, last)
		e.now.preempted++
	}
	budget := stepTokens - decoding
	prefill := 0
	for _, j := range e.running {
		if n := min(j.left(), budget-prefill); n > 0 {
			j.computed += n
			prefill += n
			if j.left() > 0 {
				continue
			}
		} else if j.left() > 0 {
			continue
		}
		j.generated++
		e.now.generated++
	}
	gpu := gpuStep + gpuSequence*float64(decoding) + gpuPrefill*float64(prefill)
	e.now.gpu += gpu
	e.now.prompt += prefill
	e.advance(e.time + gpu + cpuStep*e.slowdown(e.time))
	e.running = slices.DeleteFunc(e.running, func(j *job) bool {
		if j.generated > 0 && j.first == 0 {
			j.first = e.time
		}
		if j.generated >= j.output {
			j.end = e.time
			return true
		}
		return false
	})
}
