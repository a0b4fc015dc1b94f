/**
 * A small custom resource that uses every list type, defaults, a status and a scale subresource: the example
 * the tests of this folder and of `patch/` share.
 */
import type { JsonObject } from "@kontinuum/std";

/** The definition of `widgets.example.io`; a new value each time. */
export function widgetCrd(): JsonObject {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "widgets.example.io" },
    spec: {
      group: "example.io",
      scope: "Namespaced",
      names: {
        plural: "widgets",
        singular: "widget",
        kind: "Widget",
        shortNames: ["wg"],
        categories: ["all"],
      },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          subresources: {
            status: {},
            scale: {
              specReplicasPath: ".spec.replicas",
              statusReplicasPath: ".status.replicas",
              labelSelectorPath: ".status.selector",
            },
          },
          selectableFields: [{ jsonPath: ".spec.size" }],
          additionalPrinterColumns: [
            { name: "Size", type: "string", jsonPath: ".spec.size" },
            { name: "Ready", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
            { name: "Blob", type: "string", jsonPath: ".spec.blob", priority: 1 },
            { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
          ],
          schema: { openAPIV3Schema: widgetSchema() },
        },
        {
          name: "v1beta1",
          served: true,
          storage: false,
          deprecated: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        },
      ],
    },
  };
}

function widgetSchema(): JsonObject {
  return {
    type: "object",
    properties: {
      spec: {
        type: "object",
        "x-kubernetes-validations": [{ rule: "self.min <= self.max", message: "min must not exceed max" }],
        properties: {
          replicas: { type: "integer", minimum: 0, maximum: 10, default: 1 },
          size: {
            type: "string",
            enum: ["s", "m", "l"],
            default: "m",
            "x-kubernetes-validations": [{ rule: "oldSelf != 'l' || self == 'l'", message: "l is final" }],
          },
          min: { type: "integer", format: "int64", default: 0 },
          max: { type: "integer", format: "int64", default: 100 },
          blob: { type: "string", nullable: true, maxLength: 1024 },
          limit: { "x-kubernetes-int-or-string": true },
          tags: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } },
          ports: {
            type: "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "protocol"],
            items: {
              type: "object",
              required: ["name"],
              properties: {
                name: { type: "string" },
                protocol: { type: "string", default: "TCP" },
                port: { type: "integer" },
              },
            },
          },
          selector: {
            type: "object",
            "x-kubernetes-map-type": "atomic",
            additionalProperties: { type: "string" },
          },
          settings: { type: "object", additionalProperties: { type: "string" } },
          args: { type: "array", items: { type: "string" } },
          free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        },
      },
      status: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    },
  };
}
