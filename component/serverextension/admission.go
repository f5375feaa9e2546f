package serverextension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/admit"
	"inquest/admit/decision"
	"inquest/admit/event"
	"inquest/admit/truth"
	"inquest/alert"
	"inquest/record"
	"inquest/recorder"
	"inquest/schema"
)

// EventsConfig says how AI events are checked.
type EventsConfig struct {
	// Validate is whether AI events are checked against the schema. Default: true.
	Validate bool `mapstructure:"validate"`
	// Schema is a file with a JSON Schema that takes the place of the published
	// one; it may refer to it by its $id. Default: none.
	Schema string `mapstructure:"schema"`
	// Decisions is whether decision logs are recognised. Default: true.
	Decisions bool `mapstructure:"decisions"`
	// DecisionTables are files that add to the table of decision logs or replace
	// parts of it (docs/binding.md). Default: none.
	DecisionTables []string `mapstructure:"decision_tables"`
}

// admission is what the extension runs for the recorder: the event schema, the
// payload store, the truth check and the alerts.
type admission struct {
	log    *slog.Logger
	policy *admit.Policy
	// decisions recognises decision logs; nil recognises none.
	decisions *decision.Recogniser
	payloads  *recorder.Payloads
	alerts    *alert.Alerter
	truth     *truth.Checker
	stop      context.CancelFunc
	swept     chan struct{}
}

func (c *Config) newAdmission(ctx context.Context, log *slog.Logger) (_ *admission, err error) {
	a := &admission{log: log, policy: &admit.Policy{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.abandon(ctx))
		}
	}()
	if c.Events.Validate {
		if a.policy.Events, err = c.Events.validator(); err != nil {
			return a, err
		}
	}
	if c.Events.Decisions {
		table, err := decision.LoadTable(c.Events.DecisionTables...)
		if err != nil {
			return a, err
		}
		if a.decisions, err = decision.New(table); err != nil {
			return a, err
		}
	}
	if c.havePayloads() {
		if err := a.openPayloads(ctx, c); err != nil {
			return a, err
		}
	}
	if a.alerts, err = alert.New(c.Alerts, alert.Settings{Logger: log}); err != nil {
		return a, err
	}
	if len(c.TruthCheck.Services) == 0 {
		return a, nil
	}
	a.policy.Validate = a.validate
	return a, nil
}

// watch starts the truth check, whose findings rec keeps.
func (a *admission) watch(c *Config, rec *recorder.Recorder) error {
	if a.policy.Validate == nil {
		return nil
	}
	var err error
	a.truth, err = truth.New(c.TruthCheck, truth.Settings{
		Logger: a.log,
		Alert:  a.alerts.Notify,
		Finding: func(service string, f record.Finding) {
			if err := keepFinding(rec, service, f); err != nil {
				a.log.Error("cannot record a finding of the truth check", "error", err)
			}
		},
	})
	return err
}

func (e EventsConfig) validator() (*event.Validator, error) {
	data := schema.AIEvent()
	if e.Schema != "" {
		var err error
		if data, err = os.ReadFile(e.Schema); err != nil {
			return nil, fmt.Errorf("cannot read events::schema: %w", err)
		}
	}
	return event.New(data)
}

// letters tells the alerts about dead letters.
func (a *admission) letters(letters []admit.Letter) {
	for _, l := range letters {
		a.alerts.Notify(alert.Event{
			Reason: l.Reason, Service: l.Service, Text: l.Detail, Source: string(l.Kind),
			Hint: "inquest deadletters list --reason " + l.Reason,
		})
	}
}

// validate notes on an event whether what it claims is true.
func (a *admission) validate(service string, lr plog.LogRecord) {
	if a.truth == nil {
		return
	}
	attrs := lr.Attributes()
	text := func(name string) string {
		v, ok := attrs.Get(event.Prefix + name)
		if !ok {
			return ""
		}
		return v.AsString()
	}
	if service == "" {
		service = text("service")
	}
	fallback, ok := attrs.Get(event.Prefix + "model_load.fallback")
	claim := truth.Claim{
		ModelVersion: text("system.model_version"), ConfiguredVersion: text("model_load.configured_version"),
		RealPath: text("model_load.real_path"), FileSHA256: text("model_load.file_sha256"), Device: text("system.device"),
		Fallback: ok && fallback.Type() == pcommon.ValueTypeBool && fallback.Bool(),
	}
	if lr.EventName() == event.Prefix+"model_load" {
		a.truth.Loaded(service, truth.Load{At: lr.Timestamp().AsTime(), SHA256: claim.FileSHA256})
	}
	validated, reason, detail := a.truth.Judge(service, claim)
	if validated != nil {
		attrs.PutBool("validated", *validated)
	}
	if reason != "" && reason != truth.ReasonNotConfigured {
		attrs.PutStr("validated.reason", string(reason))
		attrs.PutStr("validated.detail", detail)
	}
}

// close ends what newAdmission and watch started, but for the payload store,
// which the recorder closes.
func (a *admission) close(ctx context.Context) error {
	var errs []error
	if a.truth != nil {
		errs = append(errs, a.truth.Close(ctx))
	}
	if a.alerts != nil {
		errs = append(errs, a.alerts.Close(ctx))
	}
	if a.stop != nil {
		a.stop()
		<-a.swept
	}
	return errors.Join(errs...)
}

// keepFinding records a finding that no investigation made.
func keepFinding(rec *recorder.Recorder, service string, f record.Finding) error {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return rec.Rows(ctx, []record.Row{{
		Time:   time.Now().UnixNano(),
		Stream: []record.Field{{Name: record.FieldType, Value: string(record.TypeFinding)}, {Name: "service.name", Value: service}},
		Fields: []record.Field{
			{Name: record.FieldBody, Value: f.Text},
			{Name: "finding.kind", Value: f.Kind},
			{Name: "finding.sensor", Value: f.Sensor},
			{Name: "finding.quadrant", Value: string(f.Quadrant)},
			{Name: "finding.entity", Value: f.Entity.String()},
			{Name: record.FieldFinding, Value: string(data)},
		},
	}})
}
