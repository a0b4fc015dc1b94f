/**
 * The registry's front: from a request about a resource to the verb that answers it.
 */
import type { JsonObject } from "@kontinuum/std";
import { decodeProtobuf } from "../codec/index.ts";
import { cloneJson } from "../json/json.ts";
import type { RequestContext } from "../pipeline/context.ts";
import type { ResourceDefinition, SubresourceDefinition, Verb } from "../resource.ts";
import { printBadValue } from "../schema/field-error.ts";
import {
  badRequest,
  conflict,
  invalid,
  methodNotAllowed,
  notFound,
  routeNotFound,
  wrongMethod,
} from "../status/status.ts";
import { readObjectBody } from "../wire/body.ts";
import { sendValue } from "../wire/respond.ts";
import { applyConfigurationTo, configurationOf } from "./apply.ts";
import { answerForm, type AnswerForm, sendEntry, sendList, sendObject, sendWritten } from "./answer.ts";
import { checkTypeAndPlace, createObject } from "./create.ts";
import { deleteMatching, deleteObject } from "./delete.ts";
import { parseDeleteOptions } from "./delete-options.ts";
import type { RegistryDeps } from "./deps.ts";
import { reportRepeated } from "./field-strictness.ts";
import { metadataOf, metaText, normalizeMetadata } from "./metadata.ts";
import { parseListOptions, parseWriteOptions, type WriteOptions } from "./options.ts";
import { applyPatch, patchKind, readPatch, type Patch } from "./patch.ts";
import { getEntry, listEntries } from "./read.ts";
import { serveScale } from "./scale-verbs.ts";
import { updateObject, type Change } from "./update.ts";
import { readWriteBody } from "./write-body.ts";
import { serveWatch } from "./watch.ts";
import { Pieces, responseOutput } from "./watch-output.ts";

/** Answers one subresource or kind in its own way (tokens, reviews, evictions). */
export type SpecialHandler = (context: RequestContext, resource: ResourceDefinition) => Promise<void>;

/** Dispatches by verb and subresource. */
export class RegistryHandler {
  readonly #deps: RegistryDeps;
  readonly #special: ReadonlyMap<string, SpecialHandler>;
  readonly #pieces = new Pieces();

  /** `special` is keyed by `<resource>[.<group>][/<subresource>]`. */
  constructor(deps: RegistryDeps, special: ReadonlyMap<string, SpecialHandler>) {
    this.#deps = deps;
    this.#special = special;
  }

  /** Finds the resource a request is about. Fails with 404. */
  resource(context: RequestContext): ResourceDefinition {
    const { group, version, resource } = context.info;
    const found = this.#deps.resources.get(group, version, resource);
    if (!found) throw routeNotFound();
    return found;
  }

  /** Answers a request. */
  async handle(context: RequestContext): Promise<void> {
    const resource = this.resource(context);
    const { info } = context;
    if (info.rest.length > 0) throw routeNotFound();
    this.#checkScope(context, resource);
    const id = resource.group === "" ? resource.plural : `${resource.plural}.${resource.group}`;
    const special = this.#special.get(info.subresource === "" ? id : `${id}/${info.subresource}`);
    if (info.subresource !== "") {
      const subresource = resource.subresources.find(({ name }) => name === info.subresource);
      if (!subresource) throw routeNotFound();
      if (!subresource.verbs.some((verb) => verb === info.verb)) throw methodNotAllowed(resource, info.verb);
      if (special) return special(context, resource);
      return this.#subresource(context, resource, subresource);
    }
    if (!resource.verbs.includes(info.verb as Verb)) throw methodNotAllowed(resource, info.verb);
    if (special) return special(context, resource);
    return this.#main(context, resource);
  }

  #checkScope(context: RequestContext, resource: ResourceDefinition): void {
    const { namespace, verb, resource: plural } = context.info;
    const isNamespaceItself = plural === "namespaces" && resource.group === "";
    if (!resource.namespaced) {
      if (namespace !== "" && !isNamespaceItself) throw routeNotFound();
      return;
    }
    if (namespace !== "") return;
    if (verb === "list" || verb === "watch" || verb === "deletecollection") return;
    if (verb === "create") throw methodNotAllowed(resource, "create");
    throw routeNotFound();
  }

  #main(context: RequestContext, resource: ResourceDefinition): Promise<void> {
    const { verb, name } = context.info;
    if ((verb === "update" || verb === "patch") && name === "") throw wrongMethod();
    switch (context.info.verb) {
      case "get":
        return this.#get(context, resource);
      case "list":
        return this.#list(context, resource);
      case "watch":
        return this.#watch(context, resource);
      case "create":
        return this.#create(context, resource);
      case "update":
        return this.#update(context, resource, "");
      case "patch":
        return this.#patch(context, resource, "");
      case "delete":
        return this.#delete(context, resource);
      case "deletecollection":
        return this.#deleteCollection(context, resource);
      default:
        throw methodNotAllowed(resource, context.info.verb);
    }
  }

  #now(): number {
    return this.#deps.edges.clock.now();
  }

  /** Namespace of the object's key; cluster-scoped objects have none. */
  #namespace(context: RequestContext, resource: ResourceDefinition): string {
    return resource.namespaced ? context.info.namespace : "";
  }

  async #get(context: RequestContext, resource: ResourceDefinition): Promise<void> {
    const form = answerForm(context, resource, false);
    const asked = context.parameter("resourceVersion");
    if (asked !== undefined && !/^\d{1,16}$/.test(asked))
      throw badRequest(`invalid resourceVersion: ${JSON.stringify(asked.slice(0, 64))}`);
    const version = asked === undefined ? undefined : Number(asked);
    const { store, entry } = await getEntry(
      this.#deps,
      resource,
      this.#namespace(context, resource),
      context.info.name,
      version,
    );
    return sendEntry(context, resource, form, store, entry, this.#now());
  }

  async #list(context: RequestContext, resource: ResourceDefinition): Promise<void> {
    const form = answerForm(context, resource, true);
    const options = parseListOptions(context, resource, false);
    const page = await listEntries(this.#deps, resource, this.#namespace(context, resource), options);
    return sendList(context, resource, form, page, this.#now());
  }

  #watch(context: RequestContext, resource: ResourceDefinition): Promise<void> {
    const options = parseListOptions(context, resource, true);
    const output = context.upgraded ?? responseOutput(context, this.#pieces);
    return serveWatch(this.#deps, context, resource, this.#namespace(context, resource), options, output);
  }

  async #create(context: RequestContext, resource: ResourceDefinition): Promise<void> {
    const form = answerForm(context, resource, false);
    const options = parseWriteOptions(context, "CreateOptions");
    if (context.info.name !== "") throw methodNotAllowed(resource, "create");
    const body = await readWriteBody(context, resource);
    const written = await createObject(this.#deps, {
      context,
      resource,
      namespace: this.#namespace(context, resource),
      object: body.value,
      duplicates: options.fieldValidation === "Ignore" ? [] : body.duplicates(),
      options,
    });
    return sendWritten(context, resource, form, 201, written, this.#now());
  }

  async #update(context: RequestContext, resource: ResourceDefinition, subresource: string): Promise<void> {
    const form = answerForm(context, resource, false);
    const options = parseWriteOptions(context, "UpdateOptions");
    const body = await readWriteBody(context, resource);
    const duplicates = options.fieldValidation === "Ignore" ? [] : body.duplicates();
    const namespace = this.#namespace(context, resource);
    const { name } = context.info;
    normalizeMetadata(body.value);
    checkTypeAndPlace(resource, namespace, name, body.value);
    const fresh = (): JsonObject => cloneJson(body.value);
    const creates = resource.createOnUpdate === true && subresource === "";
    const result = await updateObject(this.#deps, {
      context,
      resource,
      namespace,
      name,
      subresource,
      options,
      optionsKind: "UpdateOptions",
      change: () => ({ object: fresh(), duplicates }),
      unconditional: resource.unconditionalUpdate ?? resource.origin === "builtin",
      ...(creates
        ? {
            createMissing: async () => {
              const object = fresh();
              if (metaText(object, "uid") !== "") throw notFound(resource, name);
              await this.#deps.authorize(context, "create");
              delete metadataOf(object)["resourceVersion"];
              metadataOf(object)["name"] = name;
              return createObject(this.#deps, { context, resource, namespace, object, duplicates, options });
            },
          }
        : {}),
    });
    return sendWritten(context, resource, form, result.created ? 201 : 200, result, this.#now());
  }

  async #patch(context: RequestContext, resource: ResourceDefinition, subresource: string): Promise<void> {
    const form = answerForm(context, resource, false);
    const kind = patchKind(context, resource);
    const options = parseWriteOptions(context, "PatchOptions", kind === "apply");
    const patch = await readPatch(context, kind);
    if (kind === "apply") return this.#apply(context, resource, subresource, form, options, patch);
    const duplicates = options.fieldValidation === "Ignore" ? [] : patch.body.duplicates();
    const change = (current: JsonObject): Change => {
      const before = {
        name: metaText(current, "name"),
        uid: metaText(current, "uid"),
        version: metaText(current, "resourceVersion"),
      };
      const object = applyPatch(resource, current, patch);
      const metadata = metadataOf(object);
      // A patch that does not name a version means "whatever is newest": the loop retries for it.
      if (metadata["resourceVersion"] === undefined || metadata["resourceVersion"] === null)
        metadata["resourceVersion"] = before.version;
      const { name, uid } = metadata;
      if (typeof name === "string" && name !== "" && name !== before.name)
        throw badRequest(
          `the name of the object (${name}) does not match the name on the URL (${before.name})`,
        );
      for (const [key, value, was] of [
        ["name", name, before.name],
        ["uid", uid ?? before.uid, before.uid],
      ] as const) {
        if (value === was) continue;
        throw invalid(resource, before.name, [
          {
            reason: "FieldValueInvalid",
            field: `metadata.${key}`,
            message: `Invalid value: ${printBadValue(value ?? "")}: field is immutable`,
          },
        ]);
      }
      return { object, duplicates };
    };
    const result = await updateObject(this.#deps, {
      context,
      resource,
      namespace: this.#namespace(context, resource),
      name: context.info.name,
      subresource,
      options,
      optionsKind: "PatchOptions",
      change,
      unconditional: true,
    });
    return sendWritten(context, resource, form, 200, result, this.#now());
  }

  async #apply(
    context: RequestContext,
    resource: ResourceDefinition,
    subresource: string,
    form: AnswerForm,
    options: WriteOptions,
    patch: Patch,
  ): Promise<void> {
    const namespace = this.#namespace(context, resource);
    const { name } = context.info;
    reportRepeated(context, options.fieldValidation, () => patch.body.repeated());
    const configuration = configurationOf(context, resource, patch);
    const merged = (live: JsonObject | undefined): Promise<JsonObject> =>
      applyConfigurationTo(this.#deps, resource, live, configuration, subresource, options);
    const result = await updateObject(this.#deps, {
      context,
      resource,
      namespace,
      name,
      subresource,
      options,
      optionsKind: "PatchOptions",
      change: async (current) => ({ object: await merged(current), managed: true }),
      unconditional: true,
      ...(subresource === ""
        ? {
            createMissing: async () => {
              if (metaText(configuration, "uid") !== "")
                throw conflictOfMissing(resource, name, metaText(configuration, "uid"));
              await this.#deps.authorize(context, "create");
              const object = await merged(undefined);
              return createObject(this.#deps, {
                context,
                resource,
                namespace,
                object,
                duplicates: [],
                options,
                managed: true,
              });
            },
          }
        : {}),
    });
    return sendWritten(context, resource, form, result.created ? 201 : 200, result, this.#now());
  }

  async #delete(context: RequestContext, resource: ResourceDefinition): Promise<void> {
    const form = answerForm(context, resource, false);
    const body = await readObjectBody(context.request, decodeProtobuf);
    const options = parseDeleteOptions(context, body?.value);
    const { name } = context.info;
    const deleted = await deleteObject(this.#deps, {
      context,
      resource,
      namespace: this.#namespace(context, resource),
      name,
      options,
    });
    if (!deleted.removed) return sendObject(context, resource, form, 200, deleted.object, this.#now());
    const uid = metaText(deleted.object, "uid");
    return sendValue(context, 200, {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Success",
      details: {
        name,
        ...(resource.group === "" ? {} : { group: resource.group }),
        kind: resource.plural,
        ...(uid === "" ? {} : { uid }),
      },
    });
  }

  async #deleteCollection(context: RequestContext, resource: ResourceDefinition): Promise<void> {
    const form = answerForm(context, resource, true);
    const listOptions = parseListOptions(context, resource, false);
    const body = await readObjectBody(context.request, decodeProtobuf);
    const options = parseDeleteOptions(context, body?.value);
    const page = await listEntries(this.#deps, resource, this.#namespace(context, resource), listOptions);
    const selective = !listOptions.labels.empty || !listOptions.fields.empty;
    const entries = await deleteMatching(
      this.#deps,
      { context, resource, options },
      { entries: page.entries, broken: selective ? [] : page.broken },
    );
    return sendList(context, resource, form, { ...page, entries }, this.#now());
  }

  #subresource(
    context: RequestContext,
    resource: ResourceDefinition,
    subresource: SubresourceDefinition,
  ): Promise<void> {
    if (subresource.scale) return serveScale(this.#deps, context, resource, subresource.scale);
    switch (context.info.verb) {
      case "get":
        return this.#get(context, resource);
      case "update":
        return this.#update(context, resource, subresource.name);
      case "patch":
        return this.#patch(context, resource, subresource.name);
      default:
        throw methodNotAllowed(resource, context.info.verb);
    }
  }
}

function conflictOfMissing(resource: ResourceDefinition, name: string, uid: string): Error {
  return conflict(
    resource,
    name,
    `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`,
  );
}
