package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// result is what -json writes.
type result struct {
	Time       time.Time      `json:"time"`
	CPUs       int            `json:"cpus"`
	Rounds     int            `json:"rounds"`
	BatchSize  int            `json:"batch_size"`
	Batches    int            `json:"batches"`
	Senders    int            `json:"senders"`
	RealBodies bool           `json:"real_bodies"`
	Signals    []signalResult `json:"signals"`
}

// signalResult compares the servers on one signal.
type signalResult struct {
	Signal string `json:"signal"`
	// Records is how many were sent in each round; BytesPerRecord how large one
	// is on the wire, and PeerBytesPerRecord the same for VictoriaLogs.
	Records            int     `json:"records"`
	BytesPerRecord     float64 `json:"bytes_per_record"`
	PeerBytesPerRecord float64 `json:"peer_bytes_per_record"`
	Rows               []row   `json:"rows"`
}

// row is one server: medians over the rounds.
type row struct {
	Name         string  `json:"name"`
	AckedRate    spread  `json:"acked_records_per_s"`
	VisibleRate  spread  `json:"visible_records_per_s"`
	CPUMicros    spread  `json:"cpu_us_per_record"` // of the server, until visible
	P50Millis    float64 `json:"request_p50_ms"`
	P99Millis    float64 `json:"request_p99_ms"`
	Retries      int     `json:"retries"`
	RecordBytes  float64 `json:"disk_bytes_per_record"`       // the records' store at rest
	TotalBytes   float64 `json:"disk_bytes_per_record_total"` // the whole data folder at rest
	MergedBytes  float64 `json:"disk_bytes_per_record_merged"`
	PeakRSSMB    float64 `json:"peak_rss_mb"` // the largest of all rounds
	RatioAcked   float64 `json:"ratio_acked"`
	RatioVisible float64 `json:"ratio_visible"`
	RatioDisk    float64 `json:"ratio_disk"`
	RatioMerged  float64 `json:"ratio_disk_merged"`
	RatioCPU     float64 `json:"ratio_cpu"`
}

type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(runs []measurement, f func(measurement) float64) spread {
	values := make([]float64, len(runs))
	for i, m := range runs {
		values[i] = f(m)
	}
	slices.Sort(values)
	n := len(values)
	return spread{Median: (values[(n-1)/2] + values[n/2]) / 2, Min: values[0], Max: values[n-1]}
}

func summarize(name string, runs []measurement) row {
	per := func(f func(measurement) float64) func(measurement) float64 {
		return func(m measurement) float64 { return f(m) / float64(m.records) }
	}
	median := func(f func(measurement) float64) float64 { return spreadOf(runs, f).Median }
	r := row{
		Name:        name,
		AckedRate:   spreadOf(runs, func(m measurement) float64 { return float64(m.records) / m.acked.Seconds() }),
		VisibleRate: spreadOf(runs, func(m measurement) float64 { return float64(m.records) / m.visible.Seconds() }),
		CPUMicros:   spreadOf(runs, per(func(m measurement) float64 { return m.cpu.Seconds() * 1e6 })),
		P50Millis:   median(func(m measurement) float64 { return m.p50.Seconds() * 1e3 }),
		P99Millis:   median(func(m measurement) float64 { return m.p99.Seconds() * 1e3 }),
		RecordBytes: median(per(func(m measurement) float64 { return float64(m.recordBytes) })),
		TotalBytes:  median(per(func(m measurement) float64 { return float64(m.totalBytes) })),
		PeakRSSMB:   spreadOf(runs, func(m measurement) float64 { return float64(m.peakRSS) / 1e6 }).Max,
	}
	for _, m := range runs {
		r.Retries += m.retries
		if m.mergedBytes > 0 {
			r.MergedBytes = float64(m.mergedBytes) / float64(m.records)
		}
	}
	return r
}

// compare sets each row's ratios to the first row, the peer.
func (s *signalResult) compare() {
	peer := s.Rows[0]
	for i := range s.Rows {
		r := &s.Rows[i]
		r.RatioAcked = ratio(r.AckedRate.Median, peer.AckedRate.Median)
		r.RatioVisible = ratio(r.VisibleRate.Median, peer.VisibleRate.Median)
		r.RatioDisk = ratio(r.RecordBytes, peer.RecordBytes)
		r.RatioMerged = ratio(r.MergedBytes, peer.MergedBytes)
		r.RatioCPU = ratio(r.CPUMicros.Median, peer.CPUMicros.Median)
	}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (r result) print(w io.Writer) {
	fmt.Fprintf(w, "Ingest: %d batches of %d records, %d senders, OTLP uncompressed, %d processors, medians of %d rounds.\n",
		r.Batches, r.BatchSize, r.Senders, r.CPUs, r.Rounds)
	fmt.Fprintln(w, "inquest answers after the batch is synced to disk, VictoriaLogs before; ratios are to VictoriaLogs.")
	for _, s := range r.Signals {
		fmt.Fprintf(w, "\n%s: %.0f bytes a record on the wire", s.Signal, s.BytesPerRecord)
		if s.Signal == "spans" {
			fmt.Fprintf(w, "; VictoriaLogs takes no spans and gets log records with the same content (%.0f bytes)", s.PeerBytesPerRecord)
		}
		fmt.Fprintln(w)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "\tacked/s\t(min–max)\tratio\tvisible/s\t(min–max)\tratio\tCPU µs/rec\tratio\tp50 ms\tp99 ms\tretries\tB/rec store\tratio\tB/rec all\tB/rec merged\tratio\tpeak RSS MB\t")
		for _, x := range s.Rows {
			fmt.Fprintf(t, "%s\t%.0f\t%.0f–%.0f\t%.2f\t%.0f\t%.0f–%.0f\t%.2f\t%.1f\t%.2f\t%.1f\t%.1f\t%d\t%.1f\t%.2f\t%.1f\t%.1f\t%.2f\t%.0f\t\n",
				x.Name, x.AckedRate.Median, x.AckedRate.Min, x.AckedRate.Max, x.RatioAcked,
				x.VisibleRate.Median, x.VisibleRate.Min, x.VisibleRate.Max, x.RatioVisible,
				x.CPUMicros.Median, x.RatioCPU, x.P50Millis, x.P99Millis, x.Retries,
				x.RecordBytes, x.RatioDisk, x.TotalBytes, x.MergedBytes, x.RatioMerged, x.PeakRSSMB)
		}
		t.Flush() //nolint:errcheck // it writes into memory or to the terminal
	}
}
