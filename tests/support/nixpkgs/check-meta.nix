# nixpkgs' check of meta attributes as a table: the allowed keys with their types, and the refusals.
{ system }:

let
  inherit (builtins)
    all
    any
    attrNames
    attrValues
    concatStringsSep
    elem
    filter
    hasAttr
    isAttrs
    isBool
    isInt
    isList
    isString
    ;
  either =
    a: b: value:
    a value || b value;
  listOf = type: value: isList value && all type value;
  isStrings = listOf isString;
  isTexts = either isString isStrings;
  isPlatforms = listOf (either isString isAttrs);
  isLicense = either (value: isAttrs value && (value.type or null) != "derivation") isString;

  kinds = [
    "broken"
    "deprecated"
    "maintainerless"
    "removal"
  ];
  isProblem =
    name: problem:
    isAttrs problem
    && isString (problem.message or null)
    && elem (problem.kind or name) kinds
    && isStrings (problem.urls or [ ])
    && all (key: elem key [ "kind" "message" "urls" ]) (attrNames problem);

  types = {
    available = _: true;
    badPlatforms = isPlatforms;
    branch = isString;
    broken = isBool;
    changelog = isTexts;
    description = isString;
    donationPage = isString;
    downloadPage = isString;
    executables = isStrings;
    homepage = isTexts;
    hydraPlatforms = isStrings;
    identifiers = isAttrs;
    insecure = isBool;
    knownVulnerabilities = isStrings;
    license = either isLicense (listOf isLicense);
    longDescription = isString;
    mainProgram = isString;
    maintainers = listOf isAttrs;
    name = isString;
    outputsToInstall = isStrings;
    pkgConfigModules = isStrings;
    platforms = isPlatforms;
    position = isString;
    priority = isInt;
    problems = value: isAttrs value && all (name: isProblem name value.${name}) (attrNames value);
    schedulingPriority = isInt;
    sourceProvenance = listOf isAttrs;
    tag = isString;
    teams = listOf isAttrs;
    timeout = isInt;
    unfree = isBool;
    version = isString;
  };
in
attrs:
let
  meta = attrs.meta or { };
  problems = attrValues (meta.problems or { });
  wrong = filter (key: !(hasAttr key types && types.${key} meta.${key})) (attrNames meta);
  serious = filter (problem: (problem.kind or null) == "broken") problems;
in
if wrong != [ ] then
  throw "${attrs.name} has an invalid meta attrset: ${concatStringsSep ", " wrong}"
else if serious != [ ] then
  throw "${attrs.name} has problems: ${concatStringsSep "; " (map (p: p.message) serious)}"
else if meta.broken or false then
  throw "${attrs.name} is marked as broken"
else if (meta.knownVulnerabilities or [ ]) != [ ] then
  throw "${attrs.name} is marked as insecure: ${concatStringsSep "; " meta.knownVulnerabilities}"
else if
  meta ? platforms && !(elem system meta.platforms) || elem system (meta.badPlatforms or [ ])
then
  throw "${attrs.name} is not available on ${system}"
else
  true
