package record

// ScopeScraped is the name of the scope of metrics that were scraped. In PromQL
// they have the very name that the target gave them, without the suffixes for
// type and unit that other metrics get.
const ScopeScraped = "inquest/scrape"

// MetadataType is the key in a metric's metadata that holds the type that a
// target gave it, such as unknown or info, as Prometheus receivers set it.
const MetadataType = "prometheus.type"
