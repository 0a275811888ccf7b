{{/* kvca's own file: what follows from the values, and over it the value config. */}}
{{- define "kvca.config" -}}
{{- $made := dict
  "join" (list (printf "%s-peers:%v" (include "kvca.fullname" .) .Values.ports.gossip))
  "cluster_secret_file" "/etc/kvca/secrets/cluster.secret"
  "hash_key_file" "/etc/kvca/secrets/hash.key" }}
{{- if .Values.secrets.keys }}
{{- $_ := set $made "keys_file" "/etc/kvca/secrets/keys.yaml" }}
{{- end }}
{{- with .Values.backends }}
{{- $_ := set $made "backend" . }}
{{- end }}
{{- $found := list }}
{{- range .Values.discovery.services }}
{{- $found = append $found (include "kvca.discover" .) }}
{{- end }}
{{- with $found }}
{{- $_ := set $made "discover" . }}
{{- end }}
{{- mergeOverwrite $made (deepCopy .Values.config) | toYaml }}
{{- end }}
